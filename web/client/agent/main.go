// Command agent is an example of a program that uses the client. It answers a question from the
// library with the passage that has most of the question's words, and names the page. It needs no
// model.
//
//	go run ./web/client/agent --url https://satchel.example.com --key-file FILE QUESTION
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"unicode"

	"satchel/web/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	url := flags.String("url", "http://localhost:8080", "the address of the server")
	keyFile := flags.String("key-file", "", "the file with the API key")
	source := flags.String("source", "", "the ID of the only source to search")
	if err := flags.Parse(args); err != nil {
		return err
	}
	key, err := os.ReadFile(*keyFile)
	if err != nil {
		return err
	}
	c, err := client.New(client.Options{URL: *url, Key: string(key)})
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := ask(ctx, c, *source, strings.Join(flags.Args(), " "))
	if errors.Is(err, client.ErrUnauthorized) {
		return fmt.Errorf("%w Create a key on the page Account, under Keys", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n\nFrom %s\n", answer.text, answer.place)
	return err
}

// answer is a passage of a page, and where the page is.
type answer struct{ text, place string }

// pages is how many pages are read.
const pages = 3

// ask searches for the question, reads the best pages, and returns their best passage.
func ask(ctx context.Context, c *client.Client, source, question string) (answer, error) {
	found, err := c.Search(ctx, client.Query{Query: question, Source: source, Limit: pages})
	if err != nil {
		return answer{}, err
	}
	if len(found.Results) == 0 {
		return answer{}, errors.New("no page answers this question")
	}
	var paths []string
	for _, r := range found.Results {
		paths = append(paths, r.Path)
	}
	files, err := c.Read(ctx, paths...)
	if err != nil {
		return answer{}, err
	}
	words := strings.FieldsFunc(strings.ToLower(question), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var best answer
	most := -1
	for i, f := range files {
		for passage := range strings.SplitSeq(f.Content, "\n\n") {
			n := 0
			for _, w := range words {
				if len(w) > 2 && strings.Contains(strings.ToLower(passage), w) {
					n++
				}
			}
			if n > most && !strings.HasPrefix(passage, "#") {
				most, best = n, answer{strings.TrimSpace(passage), f.Path}
				if page := found.Results[i].URL; page != "" {
					best.place = page
				}
			}
		}
	}
	if best.text == "" {
		return answer{}, errors.New("no page answers this question")
	}
	return best, nil
}
