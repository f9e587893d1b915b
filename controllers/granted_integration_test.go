//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/plan"
)

// install creates what a file of config/rbac has.
func install(t *testing.T, path ...string) []client.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "config", "rbac"}, path...)...))
	must(t, err)
	var installed []client.Object
	for document := range strings.SplitSeq(strings.TrimPrefix(string(text), "---\n"), "\n---\n") {
		object := &unstructured.Unstructured{}
		must(t, yaml.UnmarshalStrict([]byte(document), &object.Object))
		must(t, cluster.Create(t.Context(), object))
		installed = append(installed, object)
	}
	return installed
}

// TestGrants: a manager finds out that it may not grant, and what others have
// granted; the commands that it asks for are all that it takes.
func TestGrants(t *testing.T) {
	install(t, "role.yaml")
	install(t, "role_binding.yaml")
	config := rest.CopyConfig(direct)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + system + ":conversion-operator",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + system, "system:authenticated"}}
	asItself, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	must(t, err)
	crd := create(t, manifest("manual.grants.example.com", "v1beta1", "v1"), &apiextensionsv1.CustomResourceDefinition{})
	policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	migrate, read, clearing := plan.Grants(plan.Observed{CRD: crd, Policy: policy})

	now := time.Now()
	authorizer := NewAuthorizer(asItself, func() time.Time { return now })
	mayGrant := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("that it may grant is %t", want), func() (bool, string) {
			now = now.Add(rightsAge)
			may, err := authorizer.MayGrant(t.Context())
			return err == nil && may == want, fmt.Sprint(may, err)
		})
	}
	mayGrant(false)
	for _, grant := range []plan.Grant{migrate, read, clearing} {
		if may, err := authorizer.May(t.Context(), system, grant); may || err != nil {
			t.Errorf("%s has it before anybody granted it: %t, %v", grant.Account, may, err)
		}
		for command := range strings.SplitSeq(grant.Commands(system), "; ") {
			if _, said, err := kubectl(strings.Fields(command)[1:]...); err != nil {
				why, _ := io.ReadAll(said)
				t.Fatalf("%s: %v: %s", command, err, why)
			}
		}
		eventually(t, grant.Account+" has what was granted", func() (bool, string) {
			may, err := authorizer.May(t.Context(), system, grant)
			return may && err == nil, fmt.Sprint(may, err)
		})
	}
	grants := append(install(t, "grants", "role.yaml"), install(t, "grants", "role_binding.yaml")...)
	mayGrant(true)
	for _, object := range grants {
		must(t, cluster.Delete(t.Context(), object))
	}
	mayGrant(false)
}
