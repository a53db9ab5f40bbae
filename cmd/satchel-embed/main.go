// Command satchel-embed runs an embedding model on this machine and serves it
// through OpenAI's API (POST /v1/embeddings). It listens on a Unix socket or on a
// TCP address. If search.embeddings.model names a directory, satchel starts this
// program with a socket.
//
// The directory holds an .onnx file, tokenizer.json and config.json, the layout in
// which sentence-transformers models are published. The model runs in pure Go (hugot
// on gomlx's simplego backend), so it needs neither cgo nor a shared library, but it
// is slower than runtimes that use them.
//
// It is a separate program and module for two reasons. Its dependencies would slow
// the start of every satchel process, including those of sandboxes. And a text that
// the tokenizer cannot read ends the process.
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
	socket := flag.String("socket", "", "`path` of the socket to serve on; the program ends when its standard input closes")
	listen := flag.String("listen", "", "`address` to serve on, such as 127.0.0.1:8081")
	batch := flag.Int("batch", 8, "number of texts that the model embeds at once")
	flag.Parse()
	if *model == "" || (*socket == "") == (*listen == "") || flag.NArg() > 0 || *batch < 1 {
		flag.Usage()
		return errors.New("usage: --model, either --socket or --listen, a --batch of at least 1, and no arguments")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	network, address := "tcp", *listen
	if *socket != "" {
		network, address = "unix", *socket
		// Standard input is a pipe from the parent process: when it closes, the parent has ended.
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
