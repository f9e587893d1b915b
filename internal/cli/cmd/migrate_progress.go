// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

const (
	// redrawMigrationEvery is how often a terminal shows the progress, and logMigrationEvery how
	// often a log does while objects are rewritten.
	redrawMigrationEvery = time.Second / 4
	logMigrationEvery    = 10 * time.Second
)

// migrationProgress shows a terminal one line that is updated, and a log a line for each step.
type migrationProgress struct {
	to          io.Writer
	interactive bool
	resources   int

	mu      sync.Mutex
	records map[string]contract.Record
	logged  map[string]time.Time
	warned  map[string]string
	last    string
}

func newMigrationProgress(to io.Writer, resources int) *migrationProgress {
	return &migrationProgress{to: to, interactive: isTerminal(to), resources: resources,
		records: map[string]contract.Record{}, logged: map[string]time.Time{}, warned: map[string]string{}}
}

// doing says what a run does in a state.
var doing = map[contract.State]string{
	contract.StatePreflight:   "trying some objects in dry runs",
	contract.StatePropagating: "waiting until every API server writes at the storage version",
	contract.StateRunning:     "rewriting",
	contract.StateAuditing:    "checking objects again that were found current",
	contract.StateVerifying:   "verifying",
	contract.StateCompleted:   "finished",
	contract.StateAborted:     "aborted",
}

// observe notes the record of one resource, and logs it if it has news.
func (p *migrationProgress) observe(resource string, record contract.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, seen := p.records[resource]
	p.records[resource], p.last = record, resource
	if p.interactive {
		return
	}
	news := !seen || before.State != record.State || before.Waiting != record.Waiting
	if news || time.Since(p.logged[resource]) >= logMigrationEvery {
		p.logged[resource] = time.Now()
		fmt.Fprintln(p.to, describe(resource, &record))
	}
}

// warn shows an error after which the run tries again, once for each text.
func (p *migrationProgress) warn(resource string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := terminal.OneLine(err.Error())
	if p.warned[resource] == text {
		return
	}
	p.warned[resource] = text
	p.clear()
	fmt.Fprintf(p.to, "%s: trying again: %s\n", resource, text)
}

func (p *migrationProgress) clear() {
	if p.interactive {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

// describe says in one line how far a run is.
func describe(resource string, record *contract.Record) string {
	text := resource + ": " + doing[record.State]
	if record.Total > 0 {
		text += fmt.Sprintf(", %d of %d objects", record.Done(), record.Known())
	}
	if record.Failed > 0 {
		text += fmt.Sprintf(", %d failed", record.Failed)
	}
	if record.State == contract.StateRunning && record.RatePerSecond >= 1 {
		text += fmt.Sprintf(", %.0f per second", record.RatePerSecond)
	}
	if record.Waiting != "" {
		text += "; waiting: " + terminal.OneLine(record.Waiting)
	}
	return text
}

// start updates the line of a terminal until stop is called.
func (p *migrationProgress) start() (stop func()) {
	if !p.interactive {
		return func() {}
	}
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		ticks := time.NewTicker(redrawMigrationEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ended:
				fmt.Fprint(p.to, "\r\x1b[K")
				return
			case <-ticks.C:
				fmt.Fprint(p.to, "\r\x1b[K"+p.line())
			}
		}
	})
	return func() { close(ended); drawing.Wait() }
}

// barWidth is the width of the bar of a terminal.
const barWidth = 20

// line is the line of a terminal: the one resource, or all of them together.
func (p *migrationProgress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all contract.Counters
	finished := 0
	for _, record := range p.records {
		all.Total += record.Known()
		all.Rewritten += record.Done()
		if record.Finished() {
			finished++
		}
	}
	record, seen := p.records[p.last]
	if !seen {
		return ""
	}
	text := describe(p.last, &record)
	if p.resources > 1 {
		text = fmt.Sprintf("%d of %d resources, %d of %d objects; %s", finished, p.resources, all.Rewritten, all.Total, text)
	}
	line := []rune(bar(all.Rewritten, all.Total) + " " + text)
	if width, _, err := term.GetSize(int(p.to.(*os.File).Fd())); err == nil && width > 0 {
		line = line[:min(len(line), width-1)]
	}
	return string(line)
}

func bar(done, total int64) string {
	filled := 0
	if total > 0 {
		filled = int(done * barWidth / total)
	}
	text := make([]byte, barWidth)
	for i := range text {
		text[i] = '.'
		if i < filled {
			text[i] = '#'
		}
	}
	return "[" + string(text) + "]"
}
