//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/cli/audit"
	"github.com/conversion-operator/conversion-operator/internal/operator/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// cluster is a real API server. No controllers run, so
// no controller repairs what a test plants.
type cluster struct{ *testenv.Server }

func start(t *testing.T) *cluster {
	t.Helper()
	return &cluster{testenv.For(t, testenv.Options{CRDs: []string{testenv.OperatorCRDs}, StorageMigrations: true})}
}

// audit audits the cluster.
func (c *cluster) audit(t *testing.T, config *rest.Config, change func(*Options)) *audit.Report {
	t.Helper()
	options := Options{
		Soon: 30 * 24 * time.Hour, AtOnce: 8, Threshold: audit.SeverityNote, Now: time.Now(), Progress: func(int, int) {},
	}
	change(&options)
	report, err := Audit(t.Context(), config, options)
	expect.NoError(t, err)
	return report
}

// lines writes findings without their evidence.
func lines(findings []audit.Finding) []string {
	found := []string{}
	for _, finding := range findings {
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", finding.Severity, finding.Confidence, finding.ID, finding.Version)))
	}
	slices.Sort(found)
	return found
}

// plant creates a definition with versions, and waits until it is established.
func (c *cluster) plant(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, versions ...apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	crd.Spec.Versions = versions
	expect.NoError(t, c.Client.Create(t.Context(), crd))
	expect.Success(t, crd.Name+" is established", func(ctx context.Context) error {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if err == nil && !crds.Condition(crd, apiextensionsv1.Established) {
			err = errors.New("it is not")
		}
		return err
	})
}

// widget returns an object of a definition at a version.
func widget(crd *apiextensionsv1.CustomResourceDefinition, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"a": "text"}}
	object.SetAPIVersion(crd.Spec.Group + "/" + version)
	object.SetKind(crd.Spec.Names.Kind)
	object.SetName("first")
	return object
}

// object creates a widget, as soon as the version is served.
func (c *cluster) object(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version string) {
	t.Helper()
	expect.Success(t, "an object is created", func(ctx context.Context) error { return c.Client.Create(ctx, widget(crd, version)) })
}
