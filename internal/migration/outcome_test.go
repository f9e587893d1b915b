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
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

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
	expect.Equal(t, "commands", want, got)
}

// TestUnderstanding has errors that are not among the recorded answers of API servers.
func TestUnderstanding(t *testing.T) {
	group := testResource.GroupResource()
	const refused, unavailable, notFound, denied = v1alpha1.FailureRefused, v1alpha1.FailureUnavailable, v1alpha1.FailureNotFound, v1alpha1.FailureAdmissionDenied
	for name, tt := range map[string]struct {
		err  error
		want understood
	}{
		"object not found, wrapped":             {fmt.Errorf("patch: %w", apierrors.NewNotFound(group, "a")), understood{notFound, refetch}},
		"another object not found":              {apierrors.NewNotFound(group, "b"), understood{notFound, stopRun}},
		"page not found":                        {generic(http.StatusNotFound, ""), understood{notFound, stopRun}},
		"page not found with the object's name": {generic(http.StatusNotFound, "a"), understood{notFound, stopRun}},
		"method not allowed":                    {apierrors.NewMethodNotSupported(group, "patch"), understood{refused, stopRun}},
		"right lost, reason given":              {forbiddenAs("a", `User "x" cannot patch resource "crontabs" in API group "example.com" at the cluster scope: RBAC: not found`), understood{denied, restartPod}},
		"another right":                         {withoutRight("approve", "a"), understood{denied, giveUp}},
		"admission quotes a missing right":      {forbiddenAs("a", `admission webhook "hold" denied the request: User "x" cannot patch resource "secrets"`), understood{denied, giveUp}},
		"an admission plugin denies":            {forbidden("a"), understood{denied, giveUp}},
		"bad request":                           {apierrors.NewBadRequest("no"), understood{refused, giveUp}},
		"teapot":                                {generic(http.StatusTeapot, ""), understood{refused, giveUp}},
		"too many requests":                     {overloaded(1), understood{unavailable, awaitServer}},
		"gateway timeout":                       {gatewayTimeout(), understood{unavailable, awaitServer}},
		"bad gateway":                           {badGateway(), understood{unavailable, awaitServer}},
		"request timeout":                       {generic(http.StatusRequestTimeout, ""), understood{unavailable, awaitServer}},
		"connection refused":                    {unreachable(), understood{unavailable, awaitServer}},
		"connection lost":                       {&url.Error{Op: "Patch", Err: io.EOF}, understood{unavailable, awaitServer}},
		"client timeout":                        {context.DeadlineExceeded, understood{unavailable, awaitServer}},
		"server timeout":                        {apierrors.NewServerTimeout(group, "patch", 1), understood{refused, tryAgain}},
		"etcd is in trouble":                    {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), understood{unavailable, tryAgain}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (understood{reasonOf(tt.err), remedyFor(tt.err, "a")}); got != tt.want {
				t.Errorf("%v means %+v, want %+v", tt.err, got, tt.want)
			}
		})
	}
}
