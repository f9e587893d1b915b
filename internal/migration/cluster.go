// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// userAgent names the migrator in audit logs and managedFields.
	userAgent = "conversion-operator-migrate"
	// requestTimeout is longer than the API server's own, which is a minute, so
	// that the server's answer is seen.
	requestTimeout = 75 * time.Second
)

// Cluster is the API server as a run sees it: Lister, Patcher, Discovery and
// Checkpoints.
type Cluster struct {
	resource   schema.GroupVersionResource
	objects    metadata.Getter
	discovery  *discovery.DiscoveryClient
	configMaps corev1.ConfigMapInterface
	checkpoint string
}

// Connect makes the clients for one resource and one checkpoint ConfigMap,
// which must exist.
func Connect(config *rest.Config, resource schema.GroupVersionResource, checkpoint types.NamespacedName) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	// The number of objects in flight is the limit, and the API server's
	// priority and fairness.
	config.QPS = -1
	config.Timeout = requestTimeout
	// The API server would repeat its warning about a deprecated version with every object.
	config.WarningHandlerWithContext = rest.NoWarnings{}

	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a metadata client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a discovery client: %w", err)
	}
	core, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a ConfigMap client: %w", err)
	}
	return &Cluster{
		resource:   resource,
		objects:    objects.Resource(resource),
		discovery:  disco,
		configMaps: core.ConfigMaps(checkpoint.Namespace),
		checkpoint: checkpoint.Name,
	}, nil
}

// List implements Lister.
func (c *Cluster) List(ctx context.Context, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return c.objects.Namespace(namespace).List(ctx, options)
}

// Patch implements Patcher. Fields that the schema does not know were stored
// before; warning about each of them would only slow the API server down.
func (c *Cluster) Patch(ctx context.Context, namespace, name string, patch []byte) (*metav1.PartialObjectMetadata, error) {
	return c.objects.Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{
		FieldManager:    userAgent,
		FieldValidation: metav1.FieldValidationIgnore,
	})
}

// StorageVersionHash implements Discovery.
func (c *Cluster) StorageVersionHash(ctx context.Context) (hash string, served bool, err error) {
	resources, err := c.discovery.ServerResourcesForGroupVersionWithContext(ctx, c.resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	for _, r := range resources.APIResources {
		if r.Name == c.resource.Resource {
			return r.StorageVersionHash, true, nil
		}
	}
	return "", false, nil
}

// Load implements Checkpoints.
func (c *Cluster) Load(ctx context.Context) ([]byte, error) {
	configMap, err := c.configMaps.Get(ctx, c.checkpoint, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return []byte(configMap.Data[RecordKey]), nil
}

// Save implements Checkpoints.
func (c *Cluster) Save(ctx context.Context, record []byte) error {
	patch, err := json.Marshal(map[string]any{"data": map[string]string{RecordKey: string(record)}})
	if err != nil {
		return err
	}
	_, err = c.configMaps.Patch(ctx, c.checkpoint, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: userAgent})
	return err
}
