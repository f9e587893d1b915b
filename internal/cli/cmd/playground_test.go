// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/cli/playground"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// playing runs the command until the test ends, and returns a function that asks what the page asks.
func playing(t *testing.T, args ...string) func(method, path, body string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	root := NewRootCommand()
	root.SetOut(out)
	root.SetErr(io.Discard)
	root.SetArgs(append([]string{"playground"}, args...))
	ended := make(chan error, 1)
	go func() {
		err := root.ExecuteContext(ctx)
		ended <- err
		_ = out.CloseWithError(err) // the reader sees why there is no address
	}()
	reader := bufio.NewReader(in)
	line, err := reader.ReadString('\n')
	expect.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	t.Cleanup(func() {
		stop()
		expect.NoError(t, <-ended)
	})
	at, err := url.Parse(strings.TrimSpace(strings.TrimPrefix(line, "The playground is at ")))
	expect.NoError(t, err)
	expect.Equal(t, "the host of the page", "127.0.0.1", at.Hostname())
	return func(method, path, body string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, method, "http://"+at.Host+path, strings.NewReader(body))
		expect.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+strings.TrimPrefix(at.Fragment, "token="))
		answer, err := http.DefaultClient.Do(request)
		expect.NoError(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		expect.NoError(t, err)
		return string(text)
	}
}

// startOf returns what a page begins with.
func startOf(t *testing.T, ask func(method, path, body string) string) (start playground.Start) {
	t.Helper()
	expect.NoError(t, json.Unmarshal([]byte(ask("GET", "/api/start", "")), &start))
	return start
}

func TestPlayground(t *testing.T) {
	if got := startOf(t, playing(t)); got.Texts != playground.Sample() || got.Live != "" {
		t.Errorf("without files it begins with %+v", got)
	}
	list := write(t, "list.json", `{"apiVersion": "v1", "kind": "List", "items": [{"kind": "CronTab", "spec": {"count": 1.50}}]}`)
	got := startOf(t, playing(t, "--crd", sampleFile("3-crd-both.yaml"), "-f", list)).Texts
	expect.Equal(t, "definition and policy", []string{readFile(t, sampleFile("3-crd-both.yaml")), ""}, []string{got.CRD, got.Policy})
	expect.Contains(t, "the objects", got.Objects, "count: 1.50")
}

func TestPlaygroundPortTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	expect.NoError(t, err)
	_, _, err = run("playground", "--port="+port)
	expect.Contains(t, "the error about a port that is taken", fmt.Sprint(err), "choose another --port")
}
