// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command static writes the page of the playground, for a web server that has no program: its engine is WebAssembly.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/conversion-operator/conversion-operator/internal/cli/playground"
	"github.com/conversion-operator/conversion-operator/internal/cli/playground/page"
)

// contentPolicy lets the page load only what is beside it.
const contentPolicy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'">`

func main() {
	output := flag.String("output", "", "folder")
	flag.Parse()
	if err := write(*output); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	files, err := page.Files()
	if err != nil {
		return err
	}
	start, err := json.Marshal(playground.Start{Texts: playground.Sample()})
	if err != nil {
		return err
	}
	files["start.json"] = page.File{Text: start}
	index := files["index.html"]
	index.Text = bytes.Replace(index.Text, []byte(`<meta name="engine" content="server">`), []byte(`<meta name="engine" content="wasm">`+"\n"+contentPolicy), 1)
	files["index.html"] = index
	for name, file := range files {
		if err := os.WriteFile(filepath.Join(folder, name), file.Text, 0o644); err != nil { //nolint:gosec // web servers read it
			return err
		}
	}
	return nil
}
