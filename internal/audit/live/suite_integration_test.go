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
	clientset "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/audit"
	"github.com/conversion-operator/conversion-operator/internal/crds"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// cluster is a real API server. No controllers run, so
// no controller repairs what a test plants.
type cluster struct {
	config  *rest.Config
	crds    clientset.CustomResourceDefinitionInterface
	objects dynamic.Interface
	core    kubernetes.Interface
}

func start(t *testing.T) *cluster {
	t.Helper()
	server := testenv.For(t, testenv.Options{CRDs: []string{testenv.OperatorCRDs}, StorageMigrations: true})
	c := &cluster{config: server.Kubeconfig}
	definitions, err := clientset.NewForConfig(c.config)
	expect.NoError(t, err)
	c.crds = definitions.CustomResourceDefinitions()
	c.objects, err = dynamic.NewForConfig(c.config)
	expect.NoError(t, err)
	c.core, err = kubernetes.NewForConfig(c.config)
	expect.NoError(t, err)
	return c
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

// create creates a definition, and waits until it is established.
func (c *cluster) create(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	_, err := c.crds.Create(t.Context(), crd, metav1.CreateOptions{})
	expect.NoError(t, err)
	until(t, func(ctx context.Context) (bool, error) {
		created, err := c.crds.Get(ctx, crd.Name, metav1.GetOptions{})
		return err == nil && crds.Condition(created, apiextensionsv1.Established), err
	})
}

type writeDefinition func(context.Context, *apiextensionsv1.CustomResourceDefinition, metav1.UpdateOptions) (*apiextensionsv1.CustomResourceDefinition, error)

// write changes a definition, or its status.
func (c *cluster) write(t *testing.T, name string, change func(*apiextensionsv1.CustomResourceDefinition), write writeDefinition) (written *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	until(t, func(ctx context.Context) (bool, error) {
		crd, err := c.crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		change(crd)
		written, err = write(ctx, crd, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil // controllers of the API server also write it
		}
		return err == nil, err
	})
	return written
}

// object creates a Widget at a version, as soon as the version is served.
func (c *cluster) object(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, version string) {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"a": "text"}}
	object.SetAPIVersion(crd.Spec.Group + "/" + version)
	object.SetKind(crd.Spec.Names.Kind)
	object.SetName("first")
	until(t, func(ctx context.Context) (bool, error) {
		_, err := c.objects.Resource(crds.Resource(crd, version)).Create(ctx, object, metav1.CreateOptions{})
		return err == nil, nil
	})
}

// until waits until a condition is true. It ignores errors before that.
func until(t *testing.T, condition func(context.Context) (bool, error)) {
	t.Helper()
	expect.Success(t, "the condition is true", func(ctx context.Context) error {
		done, err := condition(ctx)
		if err == nil && !done {
			err = errors.New("not yet true")
		}
		return err
	})
}
