// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readPause makes a reader an ordinary client instead of a load test.
const readPause = 20 * time.Millisecond

// reader reads objects during a step that no client writes meanwhile. A read may fail, but must not
// return wrong data.
type reader struct {
	stop context.CancelFunc
	end  chan error
	// failed is the first failed read, and when; empty if there was none. It is complete after finish.
	failed string
}

// reading is an object to read at a version, and its expected content.
type reading struct {
	subject, name, version string
	want                   entry
}

func (p *player) startReader(ctx context.Context, s step, before []subject) *reader {
	ctx, stop := context.WithCancel(ctx)
	r := &reader{stop: stop, end: make(chan error, 1)}
	all := p.readings(s, before)
	go func() { r.end <- p.readAll(ctx, all, r) }()
	return r
}

// finish stops the reader, and returns the first read with wrong data.
func (r *reader) finish() error {
	r.stop()
	return <-r.end
}

// readings returns the objects that the step does not affect, at the versions that are served
// before and after it.
func (p *player) readings(s step, before []subject) []reading {
	written := map[string]bool{}
	for _, w := range s.Writes {
		written[w.Subject+"/"+w.Name] = true
	}
	var all []reading
	for i, after := range s.After {
		if i >= len(before) || kindNamed(s.Kind).noWrites && s.Subject == after.Name {
			continue
		}
		for name, want := range p.ledger.all(after.Name) {
			for _, version := range after.Served {
				if !written[after.Name+"/"+name] && slices.Contains(before[i].Served, version) {
					all = append(all, reading{after.Name, name, version, want})
				}
			}
		}
	}
	return all
}

func (p *player) readAll(ctx context.Context, all []reading, r *reader) error {
	for len(all) > 0 {
		for _, each := range all {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(readPause):
			}
			wrong, err := p.read(ctx, each)
			if err != nil {
				if r.failed == "" {
					r.failed = fmt.Sprintf("%s at %s: %v", each.name, time.Now().Format(time.TimeOnly), err)
				}
				continue
			}
			p.reads++
			if len(wrong) > 0 {
				return fmt.Errorf("a client that read while the step went on: %s: %s", each.subject, wrong[0])
			}
		}
	}
	return nil
}

// read reads an object, and returns how it differs from the expected content. An error means that the
// read failed.
func (p *player) read(ctx context.Context, r reading) (wrong []string, err error) {
	// A request that is cancelled is a failed conversion for the API server.
	object, err := p.objects(r.subject, r.version).Get(context.WithoutCancel(ctx), r.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	now := observation{
		Objects: map[string]entry{r.name: r.want},
		Reads:   map[string]map[string]read{r.version: {r.name: asRead(object, nil)}},
	}
	return readsDiffer(now, now), nil
}
