//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
	"github.com/conversion-operator/conversion-operator/internal/test/published"
)

// perProject limits the definitions of each project: an API server takes long to serve a
// hundred of them.
const perProject = 3

// testPublished audits the definitions of public projects, as they are in their
// repositories. The findings in the golden file are correct: some definitions need an
// installer that fills in their conversion webhook.
func testPublished(t *testing.T, c *cluster) {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, project := range published.All {
		all, err := published.Read(t.Context(), project)
		expect.NoError(t, err)
		// Definitions with several versions first: they have more findings.
		slices.SortStableFunc(all, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
			return len(b.Spec.Versions) - len(a.Spec.Versions)
		})
		definitions = append(definitions, all[:min(len(all), perProject)]...)
	}
	c.install(t, definitions)

	report := c.audit(t, c.reader(t, "with-objects", groupsOf(definitions)), func(*Options) {})
	expect.Equal(t, "what the documented rights do not allow", "[]", fmt.Sprint(report.NotChecked))
	// The cluster also has the definitions of the operator.
	expect.Equal(t, "checked definitions", len(definitions)+2, report.Definitions)
	var text strings.Builder
	for _, finding := range report.Findings {
		fmt.Fprintf(&text, "%s %s %s %s: %s\n", finding.Severity, finding.CRD, finding.ID, finding.Version, finding.Evidence)
	}
	golden.Check(t, text.String(), "published.txt")
	missed := c.audit(t, c.reader(t, "without-objects", nil), func(*Options) {}).NotChecked
	if len(missed) == 0 || !strings.Contains(missed[0].Why, "cannot list resource") {
		t.Errorf("not checked without the right to read objects: %v", missed)
	}
}

func groupsOf(definitions []*apiextensionsv1.CustomResourceDefinition) []string {
	var groups []string
	for _, crd := range definitions {
		groups = append(groups, crd.Spec.Group)
	}
	return groups
}

// install creates definitions, and waits until the API server serves them.
func (c *cluster) install(t *testing.T, definitions []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, crd := range definitions {
		// A busy API server can take longer than it allows a request, and create the definition.
		expect.Success(t, crd.Name+" is created", func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(c.Client.Create(ctx, crd.DeepCopy()))
		})
	}
	expect.Success(t, "all are established", func(ctx context.Context) error {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		err := c.Client.List(ctx, list)
		for i := range list.Items {
			if !crds.Condition(&list.Items[i], apiextensionsv1.Established) {
				err = fmt.Errorf("%s is not", list.Items[i].Name)
			}
		}
		return err
	})
}

// reader returns the configuration of a user with the documented rights, and those to read
// objects of some groups.
func (c *cluster) reader(t *testing.T, name string, groups []string) *rest.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "api", "docs", "auditing.md"))
	expect.NoError(t, err)
	_, block, _ := strings.Cut(string(text), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	role, installed := &rbacv1.ClusterRole{}, expect.YAML[rbacv1.ClusterRole](t, "../../../../config/rbac/audit/role.yaml")
	expect.NoError(t, yaml.UnmarshalStrict([]byte(block), role))
	expect.Equal(t, "documented rules", installed.Rules, role.Rules, cmpopts.SortSlices(func(a, b rbacv1.PolicyRule) int { return cmp.Compare(a.Resources[0], b.Resources[0]) }))
	role.Name = name
	if len(groups) > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
	}
	expect.NoError(t, c.Client.Create(t.Context(), role))
	expect.NoError(t, c.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: name, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: name, APIGroup: rbacv1.GroupName},
	}))
	config := rest.CopyConfig(c.Kubeconfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	expect.Success(t, "the API server applies the rights", func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "endpointslices", Group: "discovery.k8s.io"},
		}}
		err := c.Client.Create(ctx, review)
		if err == nil && !review.Status.Allowed {
			err = errors.New("it does not")
		}
		return err
	})
	return config
}
