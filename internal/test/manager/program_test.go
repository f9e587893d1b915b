//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
	"github.com/conversion-operator/conversion-operator/internal/webhook/pod"
)

// The images of pods, the other program in the operator's, and the variables by which a script of each starts the
// test's program as that one.
const (
	operatorImage, converterProgram = "conversion-operator:test", "converter"
	ownImage, nextImage             = "example.com/crontab:1", "example.com/crontab:2"
	imageVariable, faultsVariable   = "IMAGE", "FAULTS"
)

// faultsDir has the faults of pods: a file with the name of a Deployment or of a pod.
var faultsDir string

// writeImages writes a script for each image, and returns them.
func writeImages(dir string) (map[string]string, error) {
	faultsDir = filepath.Join(dir, "faults")
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	images := map[string]string{operatorImage: filepath.Join(dir, "operator"), ownImage: filepath.Join(dir, "own"), nextImage: filepath.Join(dir, "next")}
	errs := []error{os.Mkdir(faultsDir, 0o700)}
	scripts := maps.Clone(images)
	scripts[converterProgram] = filepath.Join(dir, converterProgram)
	for image, script := range scripts {
		text := fmt.Sprintf("#!/bin/sh\n%s=%s %s=%s exec %s \"$@\"\n", imageVariable, image, faultsVariable, faultsDir, program)
		errs = append(errs, os.WriteFile(script, []byte(text), 0o700)) //nolint:gosec // it is a program
	}
	return images, errors.Join(errs...)
}

// play runs the program of an image.
func play(image string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if image == ownImage || image == nextImage {
		return serveOwn(ctx)
	}
	if image == converterProgram {
		if err := startFront(os.Args); err != nil {
			return err
		}
		return pod.Run(ctx, os.Args[1:], os.Stderr)
	}
	return cmd.NewRootCommand().ExecuteContext(ctx)
}

// startFront moves the converter to another port, and serves a front of it at its own.
func startFront(args []string) error {
	const flag, inner = "--bind-address=", "9444"
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
	address := strings.TrimPrefix(args[at], flag)
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	behind := net.JoinHostPort(host, inner)
	args[at] = flag + behind
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: behind})
	// The converter drains while it has connections.
	proxy.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it is this process
	front, err := listenTLS(address, directoryOf(args), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // others are probes of the kubelet, and read failures
			faultOf(r).answer(proxy, w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	if err == nil {
		go func() { _ = front() }()
	}
	return err
}

// directoryOf returns the folder of the mounted certificate.
func directoryOf(args []string) string {
	const flag = "--certificates="
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, flag) })
	return strings.TrimPrefix(args[at], flag)
}

// listenTLS listens with the certificate that a folder has at the time, or the last one that was complete. Each
// request needs a connection of its own, so that each verifies the certificate.
func listenTLS(address, certificates string, handler http.Handler) (serve func() error, err error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	protocols, last := new(http.Protocols), &atomic.Pointer[tls.Certificate]{}
	protocols.SetHTTP1(true)
	server := &http.Server{ //nolint:gosec // clients are those of the test
		Handler: handler, ErrorLog: log.New(io.Discard, "", 0), Protocols: protocols,
		TLSConfig: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { //nolint:gosec // as above
			pair, err := tls.LoadX509KeyPair(filepath.Join(certificates, corev1.TLSCertKey), filepath.Join(certificates, corev1.TLSPrivateKeyKey))
			if err == nil {
				last.Store(&pair)
			} else if complete := last.Load(); complete != nil {
				return complete, nil
			}
			return &pair, err
		}},
	}
	server.SetKeepAlivesEnabled(false)
	return func() error { return server.ServeTLS(listener, "", "") }, nil
}

// fault changes how a pod answers reviews. The zero value changes nothing.
type fault struct {
	Hang, NotFound, Garbage bool
	// Refuse fails reviews that contain a text.
	Refuse string
	// Replace replaces the first text in answers by the second.
	Replace [2]string
}

// faults are those to the manager and to API servers.
type faults struct{ Manager, APIServer fault }

// misbehave gives the pods of a policy, or one pod, these faults from now on.
func misbehave(t *testing.T, name string, now faults) {
	t.Helper()
	if strings.Contains(name, ".") {
		name = names.Child(name)
	}
	text, err := json.Marshal(now)
	expect.NoError(t, err)
	file := filepath.Join(faultsDir, name)
	expect.NoError(t, os.WriteFile(file+".next", text, 0o600))
	expect.NoError(t, os.Rename(file+".next", file))
}

// faultOf returns the fault of this pod to the client of a request.
func faultOf(r *http.Request) fault {
	all := faults{}
	files, _ := os.ReadDir(os.Getenv(faultsVariable)) // sorted: that of the pod itself decides
	for _, file := range files {
		if text, err := os.ReadFile(filepath.Join(os.Getenv(faultsVariable), file.Name())); err == nil && strings.HasPrefix(os.Getenv("HOSTNAME"), file.Name()) {
			all = faults{}
			_ = json.Unmarshal(text, &all) // the test wrote it
		}
	}
	if strings.HasPrefix(r.UserAgent(), webhook.ProbeAgent) {
		return all.Manager
	}
	return all.APIServer
}

// answer answers a review with the converter, or badly.
func (f fault) answer(converter http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	switch {
	case f.Hang:
		<-r.Context().Done()
	case f.NotFound:
		http.NotFound(w, r)
	case f.Garbage:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `"hello"`)
	case f.Refuse != "" && strings.Contains(string(body), f.Refuse):
		reviews.Refuse(w, r)
	case f.Replace[0] != "":
		recorder := httptest.NewRecorder()
		converter.ServeHTTP(recorder, r)
		w.Header().Set("Content-Type", recorder.Header().Get("Content-Type"))
		w.WriteHeader(recorder.Code)
		fmt.Fprint(w, strings.ReplaceAll(recorder.Body.String(), f.Replace[0], f.Replace[1]))
	default:
		converter.ServeHTTP(w, r)
	}
}
