// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
)

func TestReasons(t *testing.T) {
	terminating := apierrors.NewForbidden(testResource.GroupResource(), "a", nil)
	terminating.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
	policyDenies := apierrors.NewInvalid(testKind, "a", nil)
	policyDenies.ErrStatus.Message = `crontabs.example.com "a" is forbidden: ValidatingAdmissionPolicy 'hold' with binding 'hold' denied request: no`
	internal := func(text string) error { return apierrors.NewInternalError(errors.New(text)) }
	tests := map[string]struct {
		err  error
		want v1alpha1.MigrationFailureReason
	}{
		"converter refuses":             {unconvertible(), v1alpha1.FailureConversionFailed},
		"converter returns nonsense":    {internal("conversion webhook for example.com/v1beta1, Kind=CronTab returned 0 objects, expected 1"), v1alpha1.FailureConversionFailed},
		"converter unavailable":         {converterUnavailable(), v1alpha1.FailureUnavailable},
		"converter is in trouble":       {internal(`conversion webhook for example.com/v1beta1, Kind=CronTab failed: an error on the server ("") has prevented the request from succeeding`), v1alpha1.FailureUnavailable},
		"admission webhook unavailable": {webhookUnavailable(), v1alpha1.FailureUnavailable},
		"admission webhook denies":      {apierrors.NewBadRequest(`admission webhook "check.example.com" denied the request: no`), v1alpha1.FailureAdmissionDenied},
		"admission plugin denies":       {forbidden("a"), v1alpha1.FailureAdmissionDenied},
		"admission policy denies":       {policyDenies, v1alpha1.FailureAdmissionDenied},
		"schema":                        {invalid("a"), v1alpha1.FailureInvalid},
		"too large for the server":      {tooLarge(), v1alpha1.FailureTooLarge},
		"too large for etcd":            {internal("etcdserver: request is too large"), v1alpha1.FailureTooLarge},
		"too large for its transport":   {internal("rpc error: code = ResourceExhausted desc = trying to send message larger than max (3145800 vs. 2097152)"), v1alpha1.FailureTooLarge},
		"etcd is in trouble":            {internal("etcdserver: leader changed"), v1alpha1.FailureUnavailable},
		"namespace terminating":         {terminating, v1alpha1.FailureNamespaceTerminating},
		"written all the time":          {conflict("a"), v1alpha1.FailureConflict},
		"not found":                     {apierrors.NewNotFound(testResource.GroupResource(), "a"), v1alpha1.FailureNotFound},
		"overloaded":                    {overloaded(1), v1alpha1.FailureUnavailable},
		"unreachable":                   {unreachable(), v1alpha1.FailureUnavailable},
		"anything else":                 {apierrors.NewBadRequest("no"), v1alpha1.FailureRefused},
	}
	engine := newTestEngine(nil, nil)
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := engine.failure(object, tt.err)
			if got.reason != tt.want || !strings.HasPrefix(got.command, "kubectl ") {
				t.Errorf("reason is %s with %q, want %s", got.reason, got.command, tt.want)
			}
		})
	}
}

func TestCommands(t *testing.T) {
	engine := newTestEngine(nil, nil)
	scoped := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	unscoped := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	got := []string{
		engine.suggest(v1alpha1.FailureInvalid, scoped), engine.suggest(v1alpha1.FailureConversionFailed, unscoped), engine.suggest(v1alpha1.FailureTooLarge, scoped),
		engine.suggest(v1alpha1.FailureNamespaceTerminating, scoped), engine.suggest(v1alpha1.FailureConflict, scoped),
	}
	want := []string{
		"kubectl patch crontabs.v1.example.com a --namespace ns --type merge --patch '{}' --dry-run=server",
		"kubectl get crontabs.v1.example.com a --output yaml",
		"kubectl get crontabs.v1.example.com a --namespace ns --output json --show-managed-fields | wc --bytes",
		"kubectl get namespace ns --output yaml",
		"kubectl get crontabs.v1.example.com a --namespace ns --watch --output yaml --show-managed-fields",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestRemedyFor(t *testing.T) {
	group := testResource.GroupResource()
	tests := map[string]struct {
		err  error
		want remedy
	}{
		"conflict":                              {conflict("a"), refetch},
		"object not found":                      {apierrors.NewNotFound(group, "a"), refetch},
		"object not found, wrapped":             {fmt.Errorf("patch: %w", apierrors.NewNotFound(group, "a")), refetch},
		"another object not found":              {apierrors.NewNotFound(group, "b"), stopRun},
		"page not found":                        {generic(http.StatusNotFound, ""), stopRun},
		"page not found with the object's name": {generic(http.StatusNotFound, "a"), stopRun},
		"unauthorized":                          {unauthorized(), restartPod},
		"right lost":                            {withoutRight("patch", "a"), restartPod},
		"right lost, reason given":              {forbiddenAs("a", `User "x" cannot patch resource "crontabs" in API group "example.com" at the cluster scope: RBAC: not found`), restartPod},
		"another right":                         {withoutRight("approve", "a"), giveUp},
		"admission quotes a missing right":      {forbiddenAs("a", `admission webhook "hold" denied the request: User "x" cannot patch resource "secrets"`), giveUp},
		"method not allowed":                    {apierrors.NewMethodNotSupported(group, "patch"), stopRun},
		"forbidden":                             {forbidden("a"), giveUp},
		"invalid":                               {invalid("a"), giveUp},
		"too large":                             {tooLarge(), giveUp},
		"too large for etcd":                    {apierrors.NewInternalError(errors.New("etcdserver: request is too large")), giveUp},
		"bad request":                           {apierrors.NewBadRequest("no"), giveUp},
		"teapot":                                {generic(http.StatusTeapot, ""), giveUp},
		"too many requests":                     {overloaded(1), awaitServer},
		"unavailable":                           {unavailable(), awaitServer},
		"gateway timeout":                       {gatewayTimeout(), awaitServer},
		"bad gateway":                           {badGateway(), awaitServer},
		"request timeout":                       {generic(http.StatusRequestTimeout, ""), awaitServer},
		"connection refused":                    {unreachable(), awaitServer},
		"connection lost":                       {&url.Error{Op: "Patch", Err: io.EOF}, awaitServer},
		"client timeout":                        {context.DeadlineExceeded, awaitServer},
		"cannot convert":                        {unconvertible(), tryAgain},
		"server timeout":                        {apierrors.NewServerTimeout(group, "patch", 1), tryAgain},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := remedyFor(tt.err, "a"); got != tt.want {
				t.Errorf("remedyFor(%v) = %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestNewer(t *testing.T) {
	tests := map[string]struct {
		version, barrier string
		want             bool
	}{
		"older":              {"9", "10", false},
		"equal":              {"10", "10", false},
		"newer":              {"11", "10", true},
		"newer, more digits": {"100", "99", true},
		"no number":          {"abc", "10", false},
		"empty":              {"", "10", false},
		"zero":               {"0", "10", false},
		"barrier no number":  {"11", "abc", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: tt.version}}
			if got := newer(object, tt.barrier); got != tt.want {
				t.Errorf("newer(%q, %q) = %t", tt.version, tt.barrier, got)
			}
		})
	}
}

func TestNextToken(t *testing.T) {
	if got := nextToken(fmt.Errorf("list: %w", expiredError("latest|a"))); got != "latest|a" {
		t.Errorf("token is %q", got)
	}
	if got := nextToken(errors.New("no answer")); got != "" {
		t.Errorf("token is %q", got)
	}
}
