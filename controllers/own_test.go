// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/observed"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/webhook/probe"
)

func from[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	expect.NoError(t, yaml.UnmarshalStrict([]byte(text), &value))
	return value
}

// TestTrouble: the message about a pod that does not start is stable.
func TestTrouble(t *testing.T) {
	cases := map[string]struct {
		status, want string
		cause        observed.PodTroubleCause
	}{
		"nothing":         {"{phase: Running}", "", ""},
		"starting":        {"{containerStatuses: [{name: converter, state: {waiting: {reason: ContainerCreating}}}]}", "", ""},
		"no node":         {"{conditions: [{type: PodScheduled, status: 'False', message: '0/1 nodes are available'}]}", "it cannot be scheduled: 0/1 nodes are available", observed.PodUnschedulable},
		"a first attempt": {"{containerStatuses: [{name: converter, image: 'a:1', state: {waiting: {reason: ErrImagePull, message: 'not found'}}}]}", "the image a:1 cannot be pulled", observed.PodWithoutImage},
		"a later one":     {"{containerStatuses: [{name: converter, image: 'a:1', state: {waiting: {reason: ImagePullBackOff, message: 'back-off 40s'}}}]}", "the image a:1 cannot be pulled", observed.PodWithoutImage},
		"a crash":         {"{containerStatuses: [{name: converter, state: {waiting: {reason: CrashLoopBackOff, message: 'back-off 40s'}}}]}", "container converter exits on start, see its log", observed.PodExits},
		"a root user":     {"{containerStatuses: [{name: converter, state: {waiting: {reason: CreateContainerConfigError, message: 'container has runAsNonRoot and image will run as root'}}}]}", "container converter cannot be started: container has runAsNonRoot and image will run as root", ""},
		"an init container": {"{initContainerStatuses: [{name: first, state: {waiting: {reason: CrashLoopBackOff}}}], containerStatuses: [{name: converter, state: {waiting: {reason: PodInitializing}}}]}",
			"container first exits on start, see its log", observed.PodExits},
		"a port in use": {"{conditions: [{type: PodScheduled, status: 'False', message: \"0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports\"}]}", "it cannot be scheduled: 0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports", observed.PodWithoutPort},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := trouble(&corev1.Pod{Status: from[corev1.PodStatus](t, c.status)}); got.Message != c.want || got.Cause != c.cause {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

// TestEndpointsOf: each address of a port is returned once, and is ready if one slice reports so.
func TestEndpointsOf(t *testing.T) {
	slices := from[[]discoveryv1.EndpointSlice](t, `
- ports: [{name: metrics, port: 8080}, {name: https, port: 9443}]
  endpoints: [{addresses: [10.0.0.2], conditions: {ready: false}}, {addresses: [10.0.0.1], conditions: {ready: false}}]
- ports: [{name: https, port: 8443}]
  endpoints: [{addresses: ["2001:db8::1"], conditions: {ready: true}}]
- ports: [{name: https, port: 9443}]
  endpoints: [{addresses: [10.0.0.2]}]
`)
	want := []observed.Pod{
		{Name: "10.0.0.1:9443", IP: "10.0.0.1", Port: 9443, Scheduled: true},
		{Name: "10.0.0.2:9443", IP: "10.0.0.2", Port: 9443, Scheduled: true, Ready: true},
		{Name: "[2001:db8::1]:8443", IP: "2001:db8::1", Port: 8443, Scheduled: true, Ready: true},
	}
	expect.Equal(t, "endpoints", want, endpointsOf(slices, "https"))
}

// TestOwnTarget: each kind of converter is probed at the address and path that API servers call.
func TestOwnTarget(t *testing.T) {
	type target struct{ ServerName, Path, ReviewVersion string }
	cases := map[string]struct {
		converter string
		want      target
		endpoint  string
	}{
		"image": {"{type: Image, image: {reference: a, path: /a}, conversionReviewVersions: [v1beta1, v1]}",
			target{"crontabs-example-com-d884ab8c.conversion-system.svc", "/a", "v1beta1"}, ""},
		"service":         {"{type: Service, service: {namespace: a, name: b, path: /c}, conversionReviewVersions: [v1]}", target{"b.a.svc", "/c", "v1"}, ""},
		"url":             {"{type: URL, url: {url: 'https://example.org/a%20b'}, conversionReviewVersions: [v1]}", target{"example.org", "/a%20b", "v1"}, "example.org:443"},
		"url with a port": {"{type: URL, url: {url: 'https://[2001:db8::1]:8443'}, conversionReviewVersions: [v1]}", target{"2001:db8::1", "", "v1"}, "[2001:db8::1]:8443"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			policy := &v1alpha1.ConversionPolicy{}
			policy.Name = "crontabs.example.com"
			policy.Spec.Converter = from[v1alpha1.Converter](t, c.converter)
			got := ownTarget(&observed.Cluster{Policy: policy, CRD: &apiextensionsv1.CustomResourceDefinition{},
				Settings: observed.Settings{Namespace: "conversion-system"}})
			expect.Equal(t, "target", c.want, target{got.ServerName, got.Path, got.ReviewVersion})
			if url := policy.Spec.Converter.URL; url != nil {
				if got := externalURL(string(url.URL)).Endpoints; len(got) != 1 || got[0].Name != c.endpoint {
					t.Errorf("endpoints are %v, want %s", got, c.endpoint)
				}
			}
		})
	}
}

// TestOwnCanaries: one for each direction between versions in use.
func TestOwnCanaries(t *testing.T) {
	crd := from[apiextensionsv1.CustomResourceDefinition](t, `
spec: {group: example.com, names: {kind: CronTab}, versions: [{name: v1, served: true}, {name: v2, served: true, storage: true}, {name: v3}]}
`)
	var pairs [][2]string
	for _, canary := range ownCanaries(&crd) {
		pairs = append(pairs, [2]string{canary.From, canary.To})
		if len(canary.Objects) != 2 || string(canary.Objects[0]) != string(crds.BareCanary(&crd, canary.From[len("example.com/"):])) {
			t.Errorf("the objects from %s are %s", canary.From, canary.Objects)
		}
	}
	expect.Equal(t, "pairs", [][2]string{{"example.com/v1", "example.com/v2"}, {"example.com/v2", "example.com/v1"}}, pairs)
}

// TestProbeOwn: a pod of an image is probed once until something changes, and its warning is
// cached. Other converters of users are probed each time.
func TestProbeOwn(t *testing.T) {
	asked := 0
	failing := errors.New("no")
	p := NewProber(time.Hour)
	p.own = func(context.Context, probe.OwnTarget) ([]string, error) {
		if asked++; asked == 1 {
			return nil, failing
		}
		return []string{"one", "two"}, nil
	}
	pod := observed.Pod{UID: "1", IP: "10.0.0.1", Port: 9443}
	target := probe.OwnTarget{Path: "/convert"}
	steps := []struct {
		leaf  string
		path  string
		lasts time.Duration
		want  observed.Proof
		asked int
	}{
		{"leaf", "/convert", time.Hour, observed.Proof{Reason: "UnexpectedAnswer", Message: "no"}, 1},
		{"leaf", "/convert", time.Hour, observed.Proof{Warning: "one; two"}, 2},
		{"leaf", "/convert", time.Hour, observed.Proof{Warning: "one; two"}, 2},
		{"another certificate", "/convert", time.Hour, observed.Proof{Warning: "one; two"}, 3},
		{"another certificate", "/v2", time.Hour, observed.Proof{Warning: "one; two"}, 4},
		{"another certificate", "/v2", 0, observed.Proof{Warning: "one; two"}, 5},
	}
	for i, step := range steps {
		target.Path = step.path
		got := p.prove(t.Context(), p.ownRequests(pod, target, probeScope{leaf: []byte(step.leaf), lasts: step.lasts})(nil))
		if diff := cmp.Diff(&step.want, got); diff != "" || asked != step.asked {
			t.Errorf("step %d: asked %d times, want %d; proof (-want +got):\n%s", i, asked, step.asked, diff)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	asked = 0
	expect.Equal(t, "proof by a probe that was cut short", nil, p.prove(ended, p.ownRequests(pod, target, probeScope{lasts: time.Hour})(nil)))
}
