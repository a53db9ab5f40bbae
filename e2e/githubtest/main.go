// Command githubtest runs the stand-in for GitHub for end-to-end tests. It prints
// its origin on a line. It ends when its standard input ends, so that it never
// outlives its parent process.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"satchel/auth/github/apptest"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	s, err := apptest.New(apptest.Options{Address: *listen})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer s.Close()
	fmt.Println(s.URL)
	io.Copy(io.Discard, os.Stdin)
}
