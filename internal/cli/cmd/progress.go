// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
)

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
