// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// The paths that a converter pod serves.
const (
	// ConvertPath, followed by the hash of a ruleset as one more segment, answers a POST of a
	// ConversionReview by that ruleset. Another ruleset has another path, so an API server drops
	// the conversions that it cached for the previous ruleset.
	ConvertPath = "/convert"
	// RulesetsPath answers a GET with the Rulesets that the pod serves.
	RulesetsPath = "/ruleset"
	// HealthPath answers a GET with 200 while the process runs.
	HealthPath = "/healthz"
	// ReadyPath answers a GET with 200 while the pod accepts calls, and with 503 while it drains, if
	// there are other pods.
	ReadyPath = "/readyz"
	// MetricsPath answers scrapes of Prometheus, on a separate port.
	MetricsPath = "/metrics"
)

// DefaultMaxBodyBytes is twice the 3 MiB that an API server accepts from a client: it sends one object at a time,
// and in an AdmissionReview also the object as it was before.
const DefaultMaxBodyBytes int64 = 6 << 20

// Converter converts one object.
type Converter interface {
	// Answer converts the object at the start of text to the version toVersion of its group, and
	// appends it to dst. It returns the extended buffer, and in its outcome the number of bytes of
	// text that the object took: text may continue after the object. It retains neither buffer. It
	// may omit metadata that API servers do not take from an answer.
	//
	// A long conversion calls stop from time to time, with the memory that it takes, in bytes. When stop
	// returns true, Answer returns conversion.ErrStopped.
	//
	// Answer must be safe for concurrent use, and must reject invalid JSON. Its error is shown to
	// the client whose request needed the conversion, after the name of the object and its two
	// versions.
	Answer(dst, text []byte, toVersion string, stop func(memory int64) bool) ([]byte, conversion.Outcome, error)
}

// Ruleset is one set of compiled rules. While rules change, a pod also serves the previous ruleset:
// API servers request it until they see the change.
type Ruleset struct {
	// CRD is the name of the CustomResourceDefinition that the ruleset is for.
	CRD string
	// Group and Kind are those of its objects. Reviews of other groups are rejected.
	Group, Kind string
	// Hash identifies the ruleset in the path of a call.
	Hash string
	// Pairs are the ordered pairs of versions, from and to, that the ruleset converts. Metrics have
	// series for each of them; all other pairs share one.
	Pairs [][2]string
	// Converter converts by the ruleset.
	Converter Converter
}

// Rulesets is the response at RulesetsPath.
type Rulesets struct {
	// Hashes identify the rulesets that the pod serves, sorted.
	Hashes []string `json:"hashes"`
	// Failed is why the pod cannot serve other rulesets, by hash.
	Failed map[string]string `json:"failed,omitempty"`
}

// HandlerOptions configures a Handler.
type HandlerOptions struct {
	// BuildVersion is reported in metrics.
	BuildVersion string
	// MaxBodyBytes bounds the body of a review, in bytes. Larger bodies get status 413. Zero means
	// DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// MemoryLimit is the memory limit of the process, in bytes. It bounds connections, and the memory of all
	// concurrent calls. Zero means DefaultMemoryLimit.
	MemoryLimit int64
	// Log receives one line per failed conversion: at most one per minute at info level, the others
	// at debug level.
	Log logr.Logger
}

// Handler answers ConversionReviews and AdmissionReviews, and the requests of kubelet and operator
// about the pod. A new Handler is ready.
type Handler struct {
	// served are the current rulesets.
	served   atomic.Pointer[served]
	options  HandlerOptions
	limiters *limiters
	metrics  *metrics
	mux      *http.ServeMux
	// draining asks for the end of connections, and unready fails the readiness of the pod.
	draining, unready atomic.Bool
	// since is when the handler began to count.
	since time.Time
	// failures are those of all kinds.
	failures failureLogs
	// nameless is the kind of calls that name no known ruleset, while several kinds are served.
	nameless *kind
	// certificate returns the serving certificate. If it is nil, the failures cannot be read.
	certificate func() *tls.Certificate
}

// served are the rulesets of a Handler at one time. A call uses the same ones from start to end.
type served struct {
	// rulesets are by hash. hashes are the same hashes, sorted.
	rulesets map[string]*servedRuleset
	hashes   []string
	// failed is why other rulesets are not served, by hash.
	failed map[string]string
	// kinds are by the name of their CustomResourceDefinition.
	kinds map[string]*kind
	// other is for calls that name no known ruleset: the only kind, or one without a name.
	other *kind
}

// servedRuleset is a ruleset of a kind.
type servedRuleset struct {
	Ruleset
	kind *kind
	// targets are the versions of all rulesets of the kind, by group and version.
	targets map[string]*target
	// requested is when an API server last requested the ruleset, by clock.
	requested atomic.Int64
}

// NewHandler returns a Handler that converts by the ruleset in the path of the call.
func NewHandler(rulesets []Ruleset, options HandlerOptions) *Handler {
	options.MaxBodyBytes = cmp.Or(options.MaxBodyBytes, DefaultMaxBodyBytes)
	options.MemoryLimit = cmp.Or(options.MemoryLimit, DefaultMemoryLimit)
	h := &Handler{options: options, limiters: newLimiters(options.MemoryLimit-programBytes, runtime.GOMAXPROCS(0)), mux: http.NewServeMux(), since: time.Now()}
	h.metrics, h.nameless = newMetrics(h), h.newKind(Ruleset{})
	h.served.Store(&served{})
	h.serve(rulesets, nil)
	h.mux.HandleFunc("POST "+ConvertPath+"/{ruleset}", func(w http.ResponseWriter, r *http.Request) { h.convert(w, r, r.PathValue("ruleset")) })
	h.mux.HandleFunc("POST "+AdmitPath+"/{ruleset}", func(w http.ResponseWriter, r *http.Request) { h.admit(w, r, r.PathValue("ruleset")) })
	h.mux.HandleFunc("GET "+RulesetsPath, func(w http.ResponseWriter, _ *http.Request) {
		now := h.served.Load()
		writeJSON(w, http.StatusOK, Rulesets{Hashes: now.hashes, Failed: now.failed})
	})
	h.mux.HandleFunc("GET "+FailuresPath, h.listFailures)
	h.mux.HandleFunc("GET "+HealthPath, healthy)
	h.mux.HandleFunc("GET "+ReadyPath, h.ready)
	return h
}

// serve makes the handler serve these rulesets and no others. Calls in flight continue with the
// rulesets that they began with. failed is why other rulesets are not served.
func (h *Handler) serve(rulesets []Ruleset, failed map[string]string) {
	now := h.served.Load()
	next := &served{rulesets: map[string]*servedRuleset{}, hashes: []string{}, failed: failed, kinds: map[string]*kind{}}
	targets := map[*kind]map[string]*target{}
	for _, ruleset := range rulesets {
		kind := cmp.Or(next.kinds[ruleset.CRD], now.kinds[ruleset.CRD])
		if kind == nil {
			kind = h.newKind(ruleset)
		}
		next.kinds[ruleset.CRD] = kind
		if targets[kind] == nil {
			targets[kind] = map[string]*target{}
		}
		kind.metrics.addTargets(targets[kind], ruleset)
		next.rulesets[ruleset.Hash] = &servedRuleset{Ruleset: ruleset, kind: kind, targets: targets[kind]}
		next.rulesets[ruleset.Hash].requested.Store(int64(h.requestedAt(ruleset.Hash)))
		next.hashes = append(next.hashes, ruleset.Hash)
		next.other = kind
	}
	slices.Sort(next.hashes)
	if len(next.kinds) != 1 {
		next.other = h.nameless
	}
	h.limiters.serveKinds(len(next.kinds))
	h.failures.serveKinds(next.kinds)
	h.served.Store(next)
}

// requestedAt is when an API server last requested a ruleset, by clock.
func (h *Handler) requestedAt(hash string) time.Duration {
	if ruleset := h.served.Load().rulesets[hash]; ruleset != nil {
		return time.Duration(ruleset.requested.Load())
	}
	return 0
}

// lastRequest is when an API server last requested a ruleset, or when the program began.
func (h *Handler) lastRequest(hash string) time.Time { return programBegan.Add(h.requestedAt(hash)) }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		// The API server opens its next connection to another pod. Otherwise the pod could close a
		// kept-alive connection during a call, and a POST that loses its connection is not retried.
		w.Header().Set("Connection", "close")
	}
	// Fast path: nearly every call is a conversion.
	if hash, found := strings.CutPrefix(r.URL.Path, ConvertPath+"/"); found && r.Method == http.MethodPost && h.served.Load().rulesets[hash] != nil {
		h.convert(w, r, hash)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// Drain asks for the end of each connection with its next call, and fails the readiness of the pod if other
// pods get the next connections. The handler still answers calls.
func (h *Handler) Drain(others bool) {
	h.draining.Store(true)
	h.unready.Store(others)
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, textContent, []byte("ok\n"))
}

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	if h.unready.Load() {
		write(w, http.StatusServiceUnavailable, textContent, []byte("stopping\n"))
		return
	}
	healthy(w, r)
}
