// Command satchel-embed runs an embedding model on this machine and serves it in
// OpenAI's form (POST /v1/embeddings), on a socket for satchel, which starts it
// where search.embeddings.model names a directory, or on an address.
//
// The directory holds one .onnx file, tokenizer.json and config.json, as models
// for sentence-transformers are published. The model runs in Go (hugot over
// gomlx's simplego backend), so that neither cgo nor a library is needed; it is
// slower than the runtimes that need them.
//
// It is a program and a module of its own: what it links would cost every
// process of satchel, which is each sandbox's too, its initialisation, and a text
// that the tokenizer cannot read ends the process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	model := flag.String("model", "", "`directory` of the model")
	onnx := flag.String("onnx", "", "`name` of the .onnx file, where there are several")
	socket := flag.String("socket", "", "`path` of the socket to serve on; ends with standard input")
	listen := flag.String("listen", "", "`address` to serve on, such as 127.0.0.1:8081")
	batch := flag.Int("batch", 8, "texts that the model reads at once")
	flag.Parse()
	if *model == "" || (*socket == "") == (*listen == "") || flag.NArg() > 0 || *batch < 1 {
		flag.Usage()
		return errors.New("--model is needed, and either --socket or --listen")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	network, address := "tcp", *listen
	if *socket != "" {
		network, address = "unix", *socket
		// Whoever started it has ended when the pipe closes.
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	m, err := load(*model, *onnx, *batch)
	if err != nil {
		return fmt.Errorf("load the model in %s: %w", *model, err)
	}
	defer m.close()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, address)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: handler(m), ReadTimeout: time.Minute, ReadHeaderTimeout: 10 * time.Second}
	done := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer done()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
