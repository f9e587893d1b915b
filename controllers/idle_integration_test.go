//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/operator/tracing"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// requests records the writing requests of the manager.
type requests struct {
	mu   sync.Mutex
	sent []string
}

// sent are all writing requests of the manager, from any of its clients.
var sent requests

func (r *requests) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet {
			r.mu.Lock()
			r.sent = append(r.sent, request.Method+" "+request.URL.Path)
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// about returns the requests since an index whose path names one of the policies or one of their
// children.
func (r *requests) about(policies []string, since int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.sent[since:]), func(path string) bool {
		return !slices.ContainsFunc(policies, func(policy string) bool {
			return strings.Contains(path, policy) || strings.Contains(path, names.Child(policy))
		})
	})
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

// TestIdle: policies in a stable state, including failures, cause no writes and no events.
func TestIdle(t *testing.T) {
	policies := settled(t)
	for _, policy := range policies {
		checkNoWrites(t, policy, func(int) { look(t, []string{policy}) })
	}
	t.Run("the manager that runs", func(t *testing.T) {
		before := sent.count()
		for range 5 {
			look(t, policies)
		}
		expect.Equal(t, "it writes", "", strings.Join(sent.about(policies, before), "\n"))
	})
	t.Run("one that starts, for an hour by its clock", func(t *testing.T) { idleHour(t, policies) })
}

// at rest makes policies of many states, and waits for these.
func settled(t *testing.T) []string {
	t.Helper()
	const rules = `{hub: v1, spokes: [{version: v1beta1, rules: [%s]}]}`
	var list []string
	add := func(group string, versions []string, text, reason string) {
		t.Helper()
		if versions != nil {
			create(t, manifest(group, versions...), &apiextensionsv1.CustomResourceDefinition{})
		}
		create(t, text, &v1alpha1.ConversionPolicy{})
		name := "crontabs." + group
		if reason == v1alpha1.ReasonWaitingForVersion {
			pods.run(t, name)
		}
		list = append(list, name)
		expect.Eventually(t, name+" is "+reason, func() (bool, string) {
			ready := apimeta.FindStatusCondition(getPolicy(t, name).Status.Conditions, v1alpha1.ReadyCondition)
			return ready != nil && ready.Reason == reason, ready.String()
		})
	}
	one, both := []string{"v1beta1"}, []string{"v1beta1", "v1"}
	add("ready.idle.example.com", one, policy("ready.idle.example.com"), v1alpha1.ReasonWaitingForVersion)
	add("broken.idle.example.com", both,
		policyWith("broken.idle.example.com", fmt.Sprintf(rules, `{move: {from: .hostPort, to: .replicas}}`)), v1alpha1.ReasonInvalidRules)
	add("absent.idle.example.com", nil, policy("absent.idle.example.com"), v1alpha1.ReasonCRDNotFound)
	add("pending.idle.example.com", one, policy("pending.idle.example.com"), v1alpha1.ReasonRollingOut)
	add("equal.idle.example.com", one,
		"metadata: {name: crontabs.equal.idle.example.com}\nspec: {converter: {none: {}}}", v1alpha1.ReasonSucceeded)
	add("differs.idle.example.com", both,
		"metadata: {name: crontabs.differs.idle.example.com}\nspec: {converter: {none: {}}}", v1alpha1.ReasonSchemasDiffer)
	add("suspended.idle.example.com", both,
		strings.Replace(policy("suspended.idle.example.com"), "spec: {", "spec: {suspend: true, ", 1), v1alpha1.ReasonSuspended)
	add("elsewhere.idle.example.com", both,
		"metadata: {name: crontabs.elsewhere.idle.example.com}\nspec: {converter: {service: {namespace: nowhere, name: converter}}, certificates: {secret: {name: nothing}}}",
		v1alpha1.ReasonSecretNotFound)
	return list
}

// look causes reconciliations without a relevant change, and waits for them.
func look(t *testing.T, policies []string) {
	t.Helper()
	before := reconciliations(t)
	for _, name := range policies {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"looked":"%d"}}}`, time.Now().UnixNano())
		expect.NoError(t, cluster.Patch(t.Context(), getPolicy(t, name), client.RawPatch(mergePatch, []byte(patch))))
	}
	expect.Eventually(t, "the manager has looked", func() (bool, string) {
		now := reconciliations(t)
		return now >= before+float64(len(policies)), fmt.Sprintf("%v reconciliations, before %v", now, before)
	})
}

// reconciliations returns the number of finished reconciliations.
func reconciliations(t *testing.T) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	expect.NoError(t, err)
	at := slices.IndexFunc(families, func(family *dto.MetricFamily) bool { return family.GetName() == "controller_runtime_reconcile_total" })
	if at < 0 {
		return 0
	}
	total := 0.0
	for _, metric := range families[at].GetMetric() {
		total += metric.GetCounter().GetValue()
	}
	return total
}

// recorder records events.
type recorder struct{ notes []string }

func (r *recorder) Eventf(about, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf("%T %s %s: %s", about, kind, reason, fmt.Sprintf(note, args...)))
}

// idleHour reconciles policies repeatedly with a manager that was just started.
func idleHour(t *testing.T, policies []string) {
	t.Helper()
	var wrote requests
	config := rest.CopyConfig(direct)
	config.Wrap(wrote.watch)
	writer, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	expect.NoError(t, err)
	now := time.Now()
	ctx, events := t.Context(), &recorder{}
	starts := newReconciler(t)
	starts.Client, starts.Live, starts.Recorder, starts.Now = writer, writer, events, func() time.Time { return now }
	seen := sent.count()
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(5 * time.Minute) {
		for _, policy := range policies {
			expect.NoError(t, reconcileNow(ctx, starts, policy))
		}
	}
	expect.Equal(t, "it writes", "", strings.Join(wrote.about(policies, 0), "\n"))
	expect.Equal(t, "it says again", "", strings.Join(events.notes, "\n"))
	checkTrace(ctx, t, starts, policies[0])
	// The recorder works: a change of one policy causes an event.
	patchPolicy(t, policies[0], `{"metadata":{"finalizers":null}}`)
	expect.NoError(t, client.IgnoreNotFound(reconcileNow(ctx, starts, policies[0])))
	expect.Equal(t, "a write is noticed", true, len(wrote.about(policies, 0))+len(sent.about(policies, seen)) > 0)
}

// checkTrace checks the spans of one reconciliation and their attributes.
func checkTrace(ctx context.Context, t *testing.T, reconciler *ConversionPolicyReconciler, policy string) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	reconciler.Tracer = tracing.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	expect.NoError(t, reconcileNow(ctx, reconciler, policy))
	seen := map[string]int{}
	for _, span := range spans.GetSpans() {
		name, _, _ := strings.Cut(span.Name, " ")
		seen[name] = 1
	}
	expect.Equal(t, "spans", map[string]int{"reconcile": 1, "observe": 1, "plan": 1, "apply": 1, "report": 1}, seen)
	root := spans.GetSpans()[len(spans.GetSpans())-1]
	if root.Name != "reconcile" || !slices.Contains(root.Attributes, tracing.Policy.String(policy)) || !slices.Contains(root.Attributes, tracing.CRD.String(policy)) {
		t.Errorf("the trace is of %s %v", root.Name, root.Attributes)
	}
}
