// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/operator/apiservers"
	"github.com/conversion-operator/conversion-operator/internal/operator/pages"
)

const (
	// userAgent identifies the migration in audit logs and managedFields.
	userAgent = "conversion-operator-migrate"
	// requestTimeout exceeds the timeout of API servers, which is a minute, so that their answer
	// arrives.
	requestTimeout = 75 * time.Second
)

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// apiPath is where the API server serves a group: the core group, whose name is empty, has a path of
// its own.
func apiPath(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis"
}

// Cluster implements Lister, Patcher, Definition, Discovery, Servers, Rulesets and Checkpoints with
// client-go.
type Cluster struct {
	config     *rest.Config
	resource   schema.GroupVersionResource
	definition string
	metadata   metadata.Interface
	patches    rest.Interface
	core       *kubernetes.Clientset
	configMaps corev1.ConfigMapInterface
	checkpoint string
	clock      Clock
	size       pages.Size
	// saved is the record that was read or written last, and savedAt the resourceVersion with it.
	saved, savedAt string
}

// Connect returns a Cluster for the resource, the CustomResourceDefinition and the ConfigMap of a
// run.
func Connect(config *rest.Config, spec *contract.Spec) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = userAgent
	// The throttle, and the priority and fairness of the API server, limit the requests.
	config.QPS = -1
	pages.Bound(config)
	config.Timeout = requestTimeout
	// The API server would repeat its warning about a deprecated version with every object.
	config.WarningHandlerWithContext = rest.NoWarnings{}

	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a metadata client: %w", err)
	}
	patches, err := patchClient(config, spec.GroupVersionResource().GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for patches: %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for ConfigMaps, discovery and the addresses of API servers: %w", err)
	}
	return &Cluster{
		config:     config,
		resource:   spec.GroupVersionResource(),
		definition: spec.Pin.Name,
		metadata:   objects,
		patches:    patches,
		core:       core,
		configMaps: core.CoreV1().ConfigMaps(spec.Namespace),
		checkpoint: spec.RecordConfigMap,
		clock:      SystemClock{},
	}, nil
}

// List implements Lister. One page of several objects is read at a time. It may have fewer objects
// than the limit.
func (c *Cluster) List(ctx context.Context, scope ListScope, options metav1.ListOptions) (list *metav1.PartialObjectMetadataList, err error) {
	objects := c.metadata.Resource(c.at(scope.Version)).Namespace(scope.Namespace)
	if options.Limit <= 1 {
		return objects.List(ctx, options)
	}
	err = c.size.Read(ctx, options.Limit, func(ctx context.Context, limit int64) error {
		options.Limit = limit
		list, err = objects.List(ctx, options)
		return err
	})
	return list, err
}

// at returns the resource at a served version. An empty version is the storage version.
func (c *Cluster) at(version string) schema.GroupVersionResource {
	if version == "" {
		return c.resource
	}
	return c.resource.GroupResource().WithVersion(version)
}

// patchClient returns a REST client for patches. The metadata client cannot disable retries.
func patchClient(config *rest.Config, version schema.GroupVersion) (rest.Interface, error) {
	config = metadata.ConfigFor(config)
	config.GroupVersion = &version
	config.APIPath = apiPath(version.Group)
	return rest.RESTClientFor(config)
}

// Patch implements Patcher. It sends the patch once, even if the API server asks for a retry: the
// engine checks the CustomResourceDefinition before every attempt. It ignores unknown fields: they
// were stored before, and a warning about each of them would only slow the API server down.
func (c *Cluster) Patch(ctx context.Context, patch Patch) (*metav1.PartialObjectMetadata, error) {
	request := c.patches.Patch(types.MergePatchType).
		AbsPath(apiPath(c.resource.Group), c.resource.Group, c.at(patch.Version).Version).
		NamespaceIfScoped(patch.Namespace, patch.Namespace != "").
		Resource(c.resource.Resource).
		Name(patch.Name).
		Param("fieldManager", userAgent).
		Param("fieldValidation", metav1.FieldValidationIgnore)
	if patch.Subresource != "" {
		request = request.SubResource(patch.Subresource)
	}
	if patch.DryRun {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	answer := &metav1.PartialObjectMetadata{}
	err := request.
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").
		MaxRetries(0).
		Body(patch.Body).
		Do(ctx).
		Into(answer)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// DefinitionMetadata implements Definition. Without a resourceVersion, the API server reads from
// etcd.
func (c *Cluster) DefinitionMetadata(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	return c.metadata.Resource(definitions).Get(ctx, c.definition, metav1.GetOptions{})
}

// ServedResource implements Discovery.
func (c *Cluster) ServedResource(ctx context.Context) (*metav1.APIResource, error) {
	return c.servedResource(ctx, c.core.DiscoveryClient)
}

func (c *Cluster) servedResource(ctx context.Context, client *discovery.DiscoveryClient) (*metav1.APIResource, error) {
	resources, err := client.ServerResourcesForGroupVersionWithContext(ctx, c.resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range resources.APIResources {
		if resources.APIResources[i].Name == c.resource.Resource {
			return &resources.APIResources[i], nil
		}
	}
	return nil, nil
}

// PreviousRun returns the checkpoint of a previous run in the same namespace.
func (c *Cluster) PreviousRun(name string) Checkpoints {
	other := *c
	other.checkpoint = name
	return &other
}

// Ruleset implements Rulesets.
func (c *Cluster) Ruleset(ctx context.Context, name, hash string) ([]byte, error) {
	configMap, err := c.configMaps.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	for key, stored := range configMap.BinaryData {
		if found, _ := conversion.StoredHash(key); found == hash {
			text, err := conversion.Expand(stored)
			if err != nil || conversion.HashOf(text) != hash {
				return nil, err // a damaged one is as good as none
			}
			return text, nil
		}
	}
	return nil, nil
}

// Load implements Checkpoints.
func (c *Cluster) Load(ctx context.Context) (map[string]string, error) {
	configMap, err := c.configMaps.Get(ctx, c.checkpoint, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	c.saved, c.savedAt = configMap.Data[contract.RecordKey], configMap.ResourceVersion
	return configMap.Data, nil
}

// errSuperseded says that another pod continued the run, or that etcd was restored from a snapshot.
var errSuperseded = errors.New("it has another record than this pod wrote last: another pod continued the run, or etcd was restored; " +
	"the next pod continues from that record")

// Save implements Checkpoints. It overwrites no record that it does not know, and returns
// errSuperseded: another pod may run beside this one after a node was lost; and after etcd was
// restored from a snapshot, objects that this pod has migrated since are in their old version again.
func (c *Cluster) Save(ctx context.Context, data map[string]string) error {
	err := c.patchCheckpoint(ctx, data)
	if !apierrors.IsConflict(err) {
		return err
	}
	current, err := c.configMaps.Get(ctx, c.checkpoint, metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch current.Data[contract.RecordKey] {
	case data[contract.RecordKey]: // an earlier attempt was written, and its answer was lost
		c.saved, c.savedAt = data[contract.RecordKey], current.ResourceVersion
		return nil
	case c.saved: // something else has changed, such as a label
		c.savedAt = current.ResourceVersion
		return c.patchCheckpoint(ctx, data)
	}
	return fmt.Errorf("ConfigMap %s: %w", c.checkpoint, errSuperseded)
}

func (c *Cluster) patchCheckpoint(ctx context.Context, data map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": c.savedAt}, "data": data})
	if err != nil {
		return err
	}
	configMap, err := c.configMaps.Patch(ctx, c.checkpoint, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: userAgent})
	if err == nil {
		c.saved, c.savedAt = data[contract.RecordKey], configMap.ResourceVersion
	}
	return err
}

// Addresses implements Servers.
func (c *Cluster) Addresses(ctx context.Context) (addresses []string, leases int, err error) {
	return apiservers.Find(ctx, c.core, c.clock.Now())
}

// ServedResourceAt implements Servers. It queries an API server behind the kubernetes Service by its own
// address.
func (c *Cluster) ServedResourceAt(ctx context.Context, address string) (*metav1.APIResource, error) {
	config, err := apiservers.At(c.config, address)
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return c.servedResource(ctx, client)
}
