// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"crypto/tls"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
)

// The paths that a converter pod answers at.
const (
	// ConvertPath, and one segment behind it, answers a POST of a ConversionReview
	// by the ruleset whose hash the segment is. With another ruleset an API server asks
	// at another path, and forgets what it has cached of conversions by the former.
	ConvertPath = "/convert"
	// RulesetsPath answers a GET with the Rulesets that the pod serves.
	RulesetsPath = "/ruleset"
	// HealthPath answers a GET as long as the process serves at all.
	HealthPath = "/healthz"
	// ReadyPath answers a GET with 200 while the pod wants calls, and with 503
	// once it is about to stop.
	ReadyPath = "/readyz"
	// MetricsPath answers a GET of Prometheus, at a port of its own.
	MetricsPath = "/metrics"
)

// DefaultMaxBodyBytes is ten times the 3 MiB that an API server accepts from a
// client. API servers send one object at a time, so it is never met in practice.
const DefaultMaxBodyBytes int64 = 32 << 20

// DefaultMaxBytesInFlight is half of the memory that a converter pod may use by
// default, 256 MiB. The other half is for the program itself, for buffers that
// are kept, and for what is garbage until the collector comes around.
const DefaultMaxBytesInFlight int64 = 128 << 20

// Converter converts one object.
type Converter interface {
	// Answer converts the object that text begins with to the version toVersion
	// of its group, and appends it to dst. It returns the extended buffer, and
	// tells in its outcome how many bytes of text the object took: there may be
	// more behind it. It keeps neither of the two buffers. Of the metadata, it may
	// leave out what an API server does not take from an answer.
	//
	// If it takes long it asks now and then whether to stop, and then gives up,
	// with conversion.ErrStopped.
	//
	// It is called from many goroutines at once. It must refuse what is not valid
	// JSON. Its error is shown to the client that made the request that needed the
	// conversion, behind the name of the object and its two versions.
	Answer(dst, text []byte, toVersion string, stop func() bool) ([]byte, conversion.Outcome, error)
}

// Ruleset is one set of compiled rules. While rules change, a pod serves those of
// before too: API servers go on asking for them until they know of the change.
type Ruleset struct {
	// Hash identifies the ruleset in the path of a call.
	Hash string
	// Pairs are the ordered pairs of versions, from and to, that the ruleset has.
	// Metrics tell them apart; all others are counted together.
	Pairs [][2]string
	// Converter converts by the ruleset.
	Converter Converter
}

// Rulesets is the answer at RulesetsPath.
type Rulesets struct {
	// Hashes identify the rulesets that the pod serves, sorted.
	Hashes []string `json:"hashes"`
}

// HandlerOptions says what a Handler serves.
type HandlerOptions struct {
	// CRD is the name of the CustomResourceDefinition, for metrics.
	CRD string
	// Group is the API group of the converted kind. Reviews of others are refused.
	Group string
	// BuildVersion is reported in metrics.
	BuildVersion string
	// MaxBodyBytes bounds the body of a review, in bytes. Larger ones are
	// answered with 413. Zero means DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// MaxBytesInFlight bounds the memory of all calls together, in bytes: their
	// bodies, and answers of the same size. Calls beyond it wait, and are answered
	// with 429 when that takes too long. Zero means DefaultMaxBytesInFlight.
	MaxBytesInFlight int64
	// Log receives one line for every conversion that fails, at debug level but for
	// one a minute.
	Log logr.Logger
}

// Handler answers ConversionReviews, and the questions of kubelet and operator
// about the pod. It is ready as soon as it exists.
type Handler struct {
	// converters are the rulesets' by their hashes, which hashes has sorted.
	converters map[string]Converter
	hashes     []string
	options    HandlerOptions
	gates      *limiters
	metrics    *metrics
	// targets are the versions of all rulesets by group and version.
	targets  map[string]*target
	mux      *http.ServeMux
	draining atomic.Bool
	examples examples
	failures *failureLog
	// certificate is what the pod serves; nil where failures may not be read.
	certificate func() (*tls.Certificate, error)
}

// NewHandler returns a Handler that converts by the ruleset that a call's path names.
func NewHandler(rulesets []Ruleset, options HandlerOptions) *Handler {
	options.MaxBodyBytes = cmp.Or(options.MaxBodyBytes, DefaultMaxBodyBytes)
	options.MaxBytesInFlight = cmp.Or(options.MaxBytesInFlight, DefaultMaxBytesInFlight)
	h := &Handler{converters: map[string]Converter{}, options: options, gates: newLimiters(options.MaxBytesInFlight), mux: http.NewServeMux(),
		failures: newFailureLog(time.Now)}
	for _, ruleset := range rulesets {
		h.converters[ruleset.Hash] = ruleset.Converter
	}
	h.hashes = slices.Sorted(maps.Keys(h.converters))
	h.metrics = newMetrics(&h.options, h.gates, h.hashes)
	h.targets = h.metrics.newTargets(&h.options, rulesets)
	h.mux.HandleFunc("POST "+ConvertPath+"/{ruleset}", func(w http.ResponseWriter, r *http.Request) { h.convert(w, r, r.PathValue("ruleset")) })
	h.mux.HandleFunc("POST "+AdmitPath+"/{ruleset}", func(w http.ResponseWriter, r *http.Request) { h.admit(w, r, r.PathValue("ruleset")) })
	h.mux.HandleFunc("GET "+RulesetsPath, h.rulesets)
	h.mux.HandleFunc("GET "+FailuresPath, h.tellFailures)
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
	// Nearly every call is one of these, and needs no search for its handler.
	if hash, found := strings.CutPrefix(r.URL.Path, ConvertPath+"/"); found && r.Method == http.MethodPost && h.converters[hash] != nil {
		h.convert(w, r, hash)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// Drain fails the readiness of the pod. Calls that still come are answered.
func (h *Handler) Drain() {
	h.draining.Store(true)
}

func (h *Handler) rulesets(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, Rulesets{Hashes: h.hashes})
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, textContent, []byte("ok\n"))
}

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		write(w, http.StatusServiceUnavailable, textContent, []byte("stopping\n"))
		return
	}
	healthy(w, r)
}
