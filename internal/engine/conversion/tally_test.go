// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/internal/generate"
)

// These flags test more worlds and objects than usual, without the instrumentation of -fuzz:
//
//	go test ./internal/engine/conversion -run FuzzForged -seeds 100000 -first 1000 -objects 400 -for 3m -v | tail
//
// tests a law for three minutes, or in that many worlds, with 400 objects in each, and prints
// the number of worlds and steps.
var (
	seeds    = flag.Int("seeds", 0, "how many seeds a law is tested with, besides those of its corpus")
	first    = flag.Uint64("first", 0, "the first of these seeds")
	limit    = flag.Duration("for", 10*time.Minute, "how long a law is tested")
	perWorld = flag.Int("objects", usualObjects, "how many objects a law is tested with in each world")
)

const (
	// usualObjects is how many objects a law is tested with in each world.
	usualObjects = 4
	// objectBits are the bits of a seed that choose a world. Higher bits are the number of the
	// first object.
	objectBits = 40
)

// tally counts the worlds, objects and comparisons of a law.
type tally struct {
	law            string
	start, printed time.Time
	// used is the CPU time of the process at the start.
	used          time.Duration
	worlds, steps int
	// number is the number of the object in its world.
	number uint64
	// parts are the comparisons of the law, and what it leaves out.
	parts map[string]int
}

// newTally adds the seeds of a law, and prints the counts at the end. The law must have counted
// each of the parts.
func newTally(f *testing.F, usualSeeds int, parts ...string) *tally {
	now := time.Now() //nolint:forbidigo // the time limit is not part of the law
	c := &tally{law: f.Name(), start: now, printed: now, used: processorTime(f), parts: map[string]int{}}
	for seed := range uint64(max(usualSeeds, *seeds)) {
		f.Add(*first+seed, []byte{})
		f.Add(generate.Nested|seed%2*generate.Selecting|(*first+seed), []byte{})
		f.Add(generate.Expressions|seed%2*generate.Nested|seed/2%2*generate.Selecting|(*first+seed), []byte{})
	}
	f.Cleanup(func() {
		f.Logf("%s", c)
		const many = 1000 // a law that compares nothing in as many steps never does
		for _, part := range parts {
			if c.parts[part] == 0 && c.steps >= many {
				f.Errorf("in %d steps there was none of: %s", c.steps, part)
			}
		}
	})
	return c
}

// String returns text such as "100 worlds, 40000 steps in 20s, 4000/s of CPU; compared: 39990; left
// out: 10".
func (c *tally) String() string {
	took := time.Since(c.start) //nolint:forbidigo // as above
	used, err := processorUsed()
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d worlds, %d steps in %s, %.0f/s of CPU", c.worlds, c.steps, took.Round(time.Second), float64(c.steps)/(used-c.used).Seconds())
	for _, part := range slices.Sorted(maps.Keys(c.parts)) {
		fmt.Fprintf(&text, "; %s: %d", part, c.parts[part])
	}
	return text.String()
}

// count adds one to a part.
func (c *tally) count(part string) { c.parts[part]++ }

// printProgress prints the counts each minute if the law is tested with additional seeds.
func (c *tally) printProgress() {
	const often = time.Minute
	if *seeds > 0 && time.Since(c.printed) > often { //nolint:forbidigo // as above
		c.printed = c.printed.Add(often)
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.law, c)
	}
}

// isOver reports whether the time limit of the law has passed.
func (c *tally) isOver() bool {
	return *seeds > 0 && time.Since(c.start) > *limit //nolint:forbidigo // as above
}

// world tests a law with several objects of a world that the seed chose. The first objects continue
// the choices of the world. Each later object starts from the seed and its number, so that it can
// be repeated alone.
func (c *tally) world(t *testing.T, seed uint64, choices *generate.Choices, step func()) {
	c.worlds++
	c.number = seed >> objectBits
	defer func() {
		if t.Failed() {
			t.Logf("this was the object %d of the world: the seed %d begins with it", c.number, seed%(1<<objectBits)|c.number<<objectBits)
		}
	}()
	for range *perWorld {
		if c.number >= usualObjects {
			choices.Restart(c.number)
		}
		c.steps++
		step()
		c.printProgress()
		c.number++
	}
}
