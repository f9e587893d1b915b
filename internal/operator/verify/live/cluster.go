// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
)

// userAgent names the reader in audit logs.
const userAgent = "conversion-operator-verify"

// Cluster is a read-only client of an API server.
type Cluster struct{ client rest.Interface }

// Connect creates a client. It sends nothing yet.
func Connect(config *rest.Config) (*Cluster, error) {
	client, err := Client(config, userAgent)
	if err != nil {
		return nil, err
	}
	return &Cluster{client}, nil
}

// Client creates a read-only client that returns the bytes of the API server. It has
// no rate limit: its users limit their concurrent requests.
func Client(config *rest.Config, userAgent string) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.QPS = -1
	pages.Bound(config)
	// The API server would repeat its warning about a deprecated version with every page.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a client: %w", err)
	}
	return client, nil
}

// Definition reads a CustomResourceDefinition.
func (c *Cluster) Definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := c.get(ctx, crd, "apis", "apiextensions.k8s.io", "v1", "customresourcedefinitions", name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster has no CustomResourceDefinition %s: pass one with --crd", name)
	}
	return crd, wrap(err, "CustomResourceDefinition", name)
}

// Policy reads a ConversionPolicy.
func (c *Cluster) Policy(ctx context.Context, name string) (*v1alpha1.ConversionPolicy, error) {
	policy := &v1alpha1.ConversionPolicy{}
	group := v1alpha1.GroupVersion
	err := c.get(ctx, policy, "apis", group.Group, group.Version, "conversionpolicies", name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster has no ConversionPolicy %s: pass one with --policy", name)
	}
	return policy, wrap(err, "ConversionPolicy", name)
}

func (c *Cluster) get(ctx context.Context, into any, path ...string) error {
	return Send(ctx, c.client.Get().AbsPath(path...), into)
}

// Send sends a request, and decodes the bytes of the answer as JSON: a decoder of Kubernetes
// would not preserve them. Errors have the message of the API server.
func Send(ctx context.Context, request *rest.Request, into any) error {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	text, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// SendPage sends a request for one page of a list, of at most a number of objects, with a continue token
// if it is not empty. It replaces an expired token: the pages are then of different points in time.
func SendPage(ctx context.Context, size *pages.Size, most int64, request func() *rest.Request, token string, into any) error {
	return size.List(ctx, most, &metav1.ListOptions{Continue: token}, func(ctx context.Context, options metav1.ListOptions) error {
		page := request().Param("limit", fmt.Sprint(options.Limit))
		if options.Continue != "" {
			page = page.Param("continue", options.Continue)
		}
		return Send(ctx, page, into)
	})
}

func wrap(err error, kind, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s %s from the cluster: %w", kind, name, err)
}
