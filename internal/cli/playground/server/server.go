// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves the playground to a browser on this computer.
//
// Only the page itself can ask questions. A question needs a token, which is in the address that the command prints,
// after #, which browsers do not send. Requests by other pages, and by a name of this computer that others
// control (DNS rebinding), are refused. The page may load nothing from elsewhere.
package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/playground"
	"github.com/conversion-operator/conversion-operator/internal/cli/playground/page"
	"github.com/conversion-operator/conversion-operator/internal/operator/verify"
)

// Live tests the objects of a cluster.
type Live struct {
	// Name of the cluster for users.
	Name string
	Test func(context.Context, *v1alpha1.ConversionPolicy, *apiextensionsv1.CustomResourceDefinition) (*verify.Report, error)
}

// Server answers the requests of the page.
type Server struct {
	token string
	start []byte
	live  *Live
	files map[string]page.File
	// asking bounds the questions that are answered at the same time: their texts can be large.
	asking  chan struct{}
	handler http.Handler
}

const (
	// maxQuestion bounds a question, in bytes. API servers accept objects of 3 MiB; the texts can have some of them.
	maxQuestion = 32 << 20
	// maxAsking is the number of questions that are answered at the same time.
	maxAsking = 4
	// contentPolicy lets the page load only what the server has.
	contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

// New returns a server for a page that begins with the texts. Live is nil if there is no cluster.
func New(texts playground.Input, live *Live) (*Server, error) {
	start := playground.Start{Texts: texts}
	if live != nil {
		start.Live = live.Name
	}
	encoded, err := json.Marshal(start)
	if err != nil {
		return nil, err
	}
	files, err := page.Files()
	if err != nil {
		return nil, err
	}
	s := &Server{token: rand.Text(), start: encoded, live: live, files: files, asking: make(chan struct{}, maxAsking)}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { s.file(w, "index.html") })
	routes.HandleFunc("GET /{name}", func(w http.ResponseWriter, r *http.Request) { s.file(w, r.PathValue("name")) })
	routes.HandleFunc("GET /api/start", s.authorized(func(context.Context, []byte) ([]byte, error) { return s.start, nil }))
	routes.HandleFunc("POST /api/live", s.authorized(s.test))
	routes.HandleFunc("POST /api/{question}", func(w http.ResponseWriter, r *http.Request) {
		s.authorized(func(ctx context.Context, question []byte) ([]byte, error) {
			return playground.Answer(ctx, r.PathValue("question"), question)
		})(w, r)
	})
	s.handler = http.NewCrossOriginProtection().Handler(routes)
	return s, nil
}

// URL returns the address of the page, with the token.
func (s *Server) URL(address net.Addr) string {
	return "http://" + address.String() + "/#token=" + s.token
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	if !isLocal(r.Host) {
		http.Error(w, "open the address that the command printed: this name is not one of this computer", http.StatusMisdirectedRequest)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// isLocal reports whether the host of a request names this computer, whatever a name server says.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	address := net.ParseIP(name)
	return name == "localhost" || address != nil && address.IsLoopback()
}

func (s *Server) file(w http.ResponseWriter, name string) {
	file, found := s.files[name]
	if !found {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", file.Type)
	_, _ = w.Write(file.Text) // the browser has gone, if it fails
}

// authorized answers requests that have the token.
func (s *Server) authorized(answer func(context.Context, []byte) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
			http.Error(w, "open the address that the command printed: it has a token, which this page lacks", http.StatusUnauthorized)
			return
		}
		select {
		case s.asking <- struct{}{}:
			defer func() { <-s.asking }()
		case <-r.Context().Done():
			return // the page asks something newer
		}
		question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, "the texts are larger than 32 MiB: leave out objects", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			return // the browser has gone
		}
		text, err := answer(r.Context(), question)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}
}

// test tests the policy of the page on the objects of the cluster.
func (s *Server) test(ctx context.Context, question []byte) ([]byte, error) {
	if s.live == nil {
		return nil, errors.New("the command has no cluster: start it with --live")
	}
	var texts playground.Input
	if err := json.Unmarshal(question, &texts); err != nil {
		return nil, err
	}
	tested, err := playground.Test(ctx, texts, s.live.Test)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tested)
}
