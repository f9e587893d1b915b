//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestPinnedWrites: no write to a CustomResourceDefinition succeeds if it changed since the decision. A client
// changes it right before the first write of each kind. The manager decides again, until nothing is left
// of the policy.
func TestPinnedWrites(t *testing.T) {
	t.Parallel()
	const group, name = "pinned.example.com", "crontabs.pinned.example.com"
	define(t, group, "v1beta1", "v1")
	var mu sync.Mutex
	answers := map[string]int{}
	setTap(t, group, func(r *http.Request, body string, pass func() (*http.Response, error)) (*http.Response, error) {
		kind := writeOf(r, body)
		mu.Lock()
		defer mu.Unlock()
		if answers[kind] != 0 || !strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
			return pass()
		}
		label := fmt.Sprintf(`{"metadata":{"labels":{%q:"theirs"}}}`, kind)
		if err := cluster.Patch(r.Context(), manifest(t, group, "v1"), client.RawPatch("application/merge-patch+json", []byte(label))); err != nil {
			return nil, err
		}
		answer, err := pass()
		if err == nil {
			answers[kind] = answer.StatusCode
		}
		return answer, err
	})
	createPolicy(t, group, shared)
	waitReady(t, name, v1alpha1.ReasonSucceeded)
	patch(t, getPolicy(t, name), `{"spec":{"storageVersion":"v1","migration":{"trigger":"now"}}}`)
	expect.Eventually(t, "v1 is the only stored version", func() (bool, string) {
		crd := getCRD(t, name)
		return crds.StorageVersion(crd) == "v1" && len(crd.Status.StoredVersions) == 1, summaryOf(getPolicy(t, name).Status.Conditions)
	})
	changeCRD(t, name, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions = crd.Spec.Versions[1:] })
	expect.NoError(t, cluster.Delete(t.Context(), getPolicy(t, name)))
	waitUntilGone(t, name)

	const refused = http.StatusConflict
	expect.Equal(t, "answers to the first writes", map[string]int{"switch": refused, "edit": refused, "prune": refused, "restore": refused}, maps.Clone(answers))
	left := getCRD(t, name)
	expect.Equal(t, "labels of the other client", 4, len(left.Labels))
	expect.Equal(t, "strategy in the end", apiextensionsv1.NoneConverter, crds.Strategy(left))
}

// writeOf names the kind of a write to a CustomResourceDefinition.
func writeOf(r *http.Request, body string) string {
	switch {
	case strings.HasSuffix(r.URL.Path, "/status"):
		return "prune"
	case strings.Contains(body, "/spec/versions"):
		return "edit"
	case strings.Contains(body, `"path":"/spec/conversion"`):
		return "restore"
	}
	return "switch"
}
