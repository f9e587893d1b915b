// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// The paths that a converter pod answers at.
const (
	// ConvertPath answers a POST of a ConversionReview. Whatever one segment
	// follows it, the plan's hash, is there for the API server: with another path
	// it forgets what it has cached of conversions by another plan.
	ConvertPath = "/convert"
	// PlanPath answers a GET with the Plan that the pod serves.
	PlanPath = "/plan"
	// HealthPath answers a GET as long as the process serves at all.
	HealthPath = "/healthz"
	// ReadyPath answers a GET with 200 while the pod wants calls, and with 503
	// once it is about to stop.
	ReadyPath = "/readyz"
)

// DefaultMaxBodyBytes is ten times the 3 MiB that an API server accepts from a
// client. API servers send one object at a time, so it is never met in practice.
const DefaultMaxBodyBytes int64 = 32 << 20

// Converter converts one object.
type Converter interface {
	// Convert appends object, converted to the version toVersion of its group,
	// to dst and returns the extended buffer. It keeps neither of the two.
	//
	// It is called from many goroutines at once. object is delimited by balanced
	// brackets only: Convert must refuse what is not valid JSON. Its error is
	// shown to whoever made the request that needed the conversion.
	Convert(dst, object []byte, toVersion string) ([]byte, error)
}

// Plan is the answer at PlanPath.
type Plan struct {
	// Hash identifies the compiled rules that the pod serves.
	Hash string `json:"hash"`
}

// HandlerOptions says what a Handler serves.
type HandlerOptions struct {
	// Group is the API group of the converted kind. Reviews of others are refused.
	Group string
	// PlanHash is reported at PlanPath.
	PlanHash string
	// MaxBodyBytes bounds the body of a review, in bytes. Larger ones are
	// answered with 413. Zero means DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// Log receives one line for every conversion that fails.
	Log logr.Logger
}

// Handler answers ConversionReviews, and the questions of kubelet and operator
// about the pod. It is ready as soon as it exists.
type Handler struct {
	converter Converter
	options   HandlerOptions
	mux       *http.ServeMux
	draining  atomic.Bool
}

// NewHandler returns a Handler that converts by converter.
func NewHandler(converter Converter, options HandlerOptions) *Handler {
	if options.MaxBodyBytes == 0 {
		options.MaxBodyBytes = DefaultMaxBodyBytes
	}
	h := &Handler{converter: converter, options: options, mux: http.NewServeMux()}
	h.mux.HandleFunc("POST "+ConvertPath, h.convert)
	h.mux.HandleFunc("POST "+ConvertPath+"/{plan}", h.convert)
	h.mux.HandleFunc("GET "+PlanPath, h.plan)
	h.mux.HandleFunc("GET "+HealthPath, healthy)
	h.mux.HandleFunc("GET "+ReadyPath, h.ready)
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		// Makes the API server open its next connection to another pod, and so
		// leaves no kept connection to be closed under a call later. A POST that
		// loses its connection is not retried.
		w.Header().Set("Connection", "close")
	}
	h.mux.ServeHTTP(w, r)
}

// Drain fails the readiness of the pod. Calls that still come are answered.
func (h *Handler) Drain() {
	h.draining.Store(true)
}

func (h *Handler) plan(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Plan{Hash: h.options.PlanHash})
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
}

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		write(w, http.StatusServiceUnavailable, "text/plain; charset=utf-8", []byte("stopping\n"))
		return
	}
	healthy(w, r)
}
