// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

// The formats in which a command writes to stdout.
const (
	formTable = "table"
	formWide  = "wide"
	formJSON  = "json"
	formYAML  = "yaml"
	formText  = "text"
)

// output is the flag for the format of a command's result.
type output struct {
	form  string
	forms []string
}

// add adds the flag, with the formats of the command, the default first.
func (o *output) add(command *cobra.Command, forms ...string) {
	o.forms = forms
	command.Flags().StringVarP(&o.form, "output", "o", forms[0], "output format: "+o.list())
	complete(command, "output", forms...)
}

func (o *output) list() string {
	last := len(o.forms) - 1
	return strings.Join(o.forms[:last], ", ") + " or " + o.forms[last]
}

func (o *output) validate() error {
	if !slices.Contains(o.forms, o.form) {
		return fmt.Errorf("--output must be %s, is %q", o.list(), o.form)
	}
	return nil
}

// isMachineReadable reports whether the format is JSON or YAML.
func (o *output) isMachineReadable() bool { return o.form == formJSON || o.form == formYAML }

// write writes the result as JSON or YAML, and calls writeText for other formats.
func (o *output) write(w io.Writer, report any, writeText func(io.Writer) error) error {
	switch o.form {
	case formJSON:
		return writeJSON(w, report)
	case formYAML:
		text, err := yaml.Marshal(report)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	return writeText(w)
}

func writeJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}

// isTerminal reports whether the output is a terminal.
func isTerminal(end any) bool {
	file, ok := end.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// colorsOf returns colors for a terminal whose user has not disabled them
// (https://no-color.org).
func colorsOf(end any) terminal.Colors {
	return terminal.Colors(isTerminal(end) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// progress shows a terminal how far a command is, and a log the final count.
type progress struct {
	to          io.Writer
	interactive bool
	// what is counted, in the plural.
	what string
	done int64
}

func (p *progress) page(done, remaining int64) {
	p.done = done
	if p.interactive {
		// Return to the start of the line and clear it.
		fmt.Fprintf(p.to, "\r\x1b[K%d of %d %s", done, done+remaining, p.what)
	}
}

// step shows what is being read, and the number of objects that were read.
func (p *progress) step(what string, objects int64) {
	if p.interactive {
		fmt.Fprintf(p.to, "\r\x1b[K%d objects read, reading %s", objects, what)
	}
}

func (p *progress) clear() {
	if p.interactive {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

func (p *progress) end() {
	p.clear()
	fmt.Fprintf(p.to, "%d %s read\n", p.done, p.what)
}
