// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/bench/pod"
	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// ServeTypedCommand is the argument by which the benchmark's binary serves controller-runtime's
// handler: each subject is a process, so that none shares the garbage collection of the clients.
const ServeTypedCommand = "serve-typed"

// memoryLimit is that of the containers of converter pods by default, in bytes.
const memoryLimit = 256 << 20

// Served is a webhook in a process that converts Tasks of one group.
type Served struct {
	*pod.Pod
	// URLs are what API servers call for each group. They trust CABundle.
	URLs     []string
	CABundle []byte
}

// StartOurs starts a converter pod of a fleet with the rulesets of Tasks in these groups. dir
// is an empty directory.
func StartOurs(ctx context.Context, binary, dir string, groups ...string) (*Served, error) {
	var paths []string
	for _, group := range groups {
		ruleset, err := newRuleset(group)
		if err != nil {
			return nil, err
		}
		text, err := ruleset.Marshal()
		if err != nil {
			return nil, err
		}
		if err := store(dir, text); err != nil {
			return nil, err
		}
		paths = append(paths, webhook.ConvertPath+"/"+conversion.HashOf(text))
	}
	options := serveOptions(binary, dir, "--shared")
	options.MemoryLimit = memoryLimit
	return startServed(ctx, options, paths...)
}

// StartTyped starts controller-runtime's webhook for Tasks in a group. binary is the benchmark's.
func StartTyped(ctx context.Context, binary, dir, group string) (*Served, error) {
	options := pod.Options{Binary: binary, Args: []string{ServeTypedCommand, "--group=" + group}, Certificates: dir, MemoryLimit: memoryLimit}
	return startServed(ctx, options, webhook.ConvertPath)
}

func startServed(ctx context.Context, options pod.Options, paths ...string) (*Served, error) {
	caBundle, err := pod.Certify(options.Certificates)
	if err != nil {
		return nil, err
	}
	process, err := pod.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	s := &Served{Pod: process, CABundle: caBundle}
	for _, path := range paths {
		s.URLs = append(s.URLs, fmt.Sprintf("https://localhost:%d%s", process.Port, path))
	}
	return s, nil
}

// caller returns a handler that has the process answer for the first group, over one connection as
// from an API server.
func (s *Served) caller() *caller {
	return &caller{s.URLs[0], &http.Client{Transport: &http.Transport{TLSClientConfig: pod.Trusting(s.CABundle), ForceAttemptHTTP2: true}}}
}

// caller calls a webhook.
type caller struct {
	url    string
	client *http.Client
}

// call sends a review, and copies the answer, which must have status 200.
func (c *caller) call(ctx context.Context, text []byte, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	_, err = io.Copy(to, answer.Body)
	return err
}

// ServeHTTP implements http.Handler.
func (c *caller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = c.call(r.Context(), text, w)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// ServeTyped serves controller-runtime's handler until ctx ends, by the arguments after
// ServeTypedCommand.
func ServeTyped(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(ServeTypedCommand, flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	group := flags.String("group", "", "the group of the kind")
	address := flags.String("bind-address", "", "address to listen on, with TLS")
	certificates := flags.String("certificates", "", "directory of tls.crt and tls.key")
	if err := flags.Parse(args); err != nil {
		return err
	}
	handler, err := newTypedHandler(*group)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(webhook.ConvertPath, handler)
	mux.HandleFunc(webhook.ReadyPath, func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{
		Handler: mux, Addr: *address, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	return server.ListenAndServeTLS(filepath.Join(*certificates, "tls.crt"), filepath.Join(*certificates, "tls.key"))
}
