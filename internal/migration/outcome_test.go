// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRemedyFor(t *testing.T) {
	group := testResource.GroupResource()
	tests := map[string]struct {
		err  error
		want remedy
	}{
		"conflict":                              {conflict("a"), lookAgain},
		"object not found":                      {apierrors.NewNotFound(group, "a"), lookAgain},
		"object not found, wrapped":             {fmt.Errorf("patch: %w", apierrors.NewNotFound(group, "a")), lookAgain},
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

func forbiddenAs(name, reason string) error {
	return apierrors.NewForbidden(testResource.GroupResource(), name, errors.New(reason))
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
