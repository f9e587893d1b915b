//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// attempts returns the errors of a user's requests for a gadget at a version.
func (k *kind) attempts(t *testing.T, version, name string) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["get"] = k.at(version).Get(t.Context(), name, metav1.GetOptions{})
	_, errs["create"] = k.at(version).Create(t.Context(), k.gadget(t, version, name+"-new", "{}"), metav1.CreateOptions{})
	_, errs["patch"] = k.at(version).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec": {"team": "red"}}`), metav1.PatchOptions{})
	_, errs["apply"] = k.at(version).Apply(t.Context(), name, k.gadget(t, version, name, "{}"), metav1.ApplyOptions{FieldManager: "applier"})
	errs["delete"] = k.at(version).Delete(t.Context(), name, metav1.DeleteOptions{})
	return errs
}

// wantErrors expects that every request failed with a message that contains the words.
func wantErrors(t *testing.T, errs map[string]error, words ...string) {
	t.Helper()
	for _, attempt := range slices.Sorted(maps.Keys(errs)) {
		if errs[attempt] == nil {
			t.Errorf("%s works", attempt)
			continue
		}
		expect.Contains(t, attempt, errs[attempt].Error(), words...)
	}
}

func wantNoErrors(t *testing.T, errs map[string]error) {
	t.Helper()
	for attempt, err := range errs {
		if err != nil {
			t.Errorf("%s: %v", attempt, err)
		}
	}
}

// testDown stops the converter and starts it again. The stored version needs no converter, and a
// watch cache still has converted objects.
func testDown(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "down")
	k.create(t, "v1", "one", spec("v1", "a"))
	k.create(t, "v1", "two", spec("v1", "a"))
	expect.Equal(t, "before", []string{"one", "two"}, k.names(t, "v1beta1", metav1.ListOptions{}))
	k.stop()
	// The API server may have connections to the converter that it does not know to be closed.
	expect.Eventually(t, "no connection is left", func() (bool, string) {
		_, err := k.at("v1beta1").Get(t.Context(), "one", metav1.GetOptions{})
		return err != nil && strings.Contains(err.Error(), "connection refused"), fmt.Sprint(err)
	})
	wantErrors(t, k.attempts(t, "v1beta1", "one"), "conversion webhook for down.example.com/v1", "Kind=Gadget failed", k.address(), "connection refused")
	wantNoErrors(t, k.attempts(t, "v1", "one"))
	if !s.cached {
		_, err := k.at("v1beta1").List(t.Context(), metav1.ListOptions{})
		words := []string{k.address(), "connection refused"}
		if apierrors.ReasonForError(err) == metav1.StatusReasonStoreReadError { // from Kubernetes 1.37 on
			words = append(words, "/gadgets/default/")
		}
		wantErrors(t, map[string]error{"list": err}, words...)
	}

	k.start(t)
	wantNoErrors(t, k.attempts(t, "v1beta1", "two"))
	expect.Equal(t, "afterwards", []string{"one-new", "two-new"}, k.names(t, "v1beta1", metav1.ListOptions{}))
}

// testOverflow has an object with more data than can be preserved. A write of the object is
// rejected if it needs that. If the object is stored already, the version that would have to
// preserve the data cannot be read, and the error names the cause and the object.
func testOverflow(t *testing.T, s *apiServer) {
	k := s.installGadgets(t, "overflow")
	large := k.gadget(t, "v1", "large", "spec: {tier: "+incompressible.Text(300<<10)+"}")
	k.store(t, "v1beta1")
	_, err := k.at("v1").Create(t.Context(), large, metav1.CreateOptions{})
	words := []string{
		"conversion webhook for overflow.example.com/v1, Kind=Gadget failed: default/large cannot be converted ", "to v1beta1: ",
		"the fields that only version v1 has take ", "all annotations together may take 262144: truncate the object's annotations",
	}
	wantErrors(t, map[string]error{"create": err}, words...)
	k.create(t, "v1", "small", spec("v1", "a"))
	expect.Equal(t, "accepted", []string{"small"}, k.names(t, "v1", metav1.ListOptions{}))

	k.store(t, "v1")
	_, err = k.at("v1").Create(t.Context(), large, metav1.CreateOptions{})
	expect.NoError(t, err)
	errs := k.attempts(t, "v1beta1", "large")
	expect.NoError(t, errs["create"])
	delete(errs, "create")
	// The watch cache of Kubernetes 1.32 may continue without the object: k8s.io/apiserver 0.32
	// pkg/storage/etcd3/watcher.go. Then lists at that version work.
	if !s.cached || testenv.AtLeast(t, s.Kubeconfig, "v1.33") {
		_, errs["list"] = k.at("v1beta1").List(t.Context(), metav1.ListOptions{Limit: 500})
	}
	wantErrors(t, errs, words...)
	wantFields(t, "another", k.get(t, "v1beta1", "small"), seen("v1", "v1beta1", "a"))

	expect.NoError(t, k.at("v1").Delete(t.Context(), "large", metav1.DeleteOptions{}))
	expect.Success(t, "v1beta1 is listed again", func(ctx context.Context) error {
		_, err := k.at("v1beta1").List(ctx, metav1.ListOptions{})
		return err
	})
}
