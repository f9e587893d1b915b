// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/conversion-operator/conversion-operator/internal/migration"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
)

const (
	// ManagedBy is the value of the label app.kubernetes.io/managed-by of ConfigMaps with records.
	ManagedBy      = "kubectl-conversion"
	managedByLabel = "app.kubernetes.io/managed-by"
	// RecordNamespace is the namespace of records, unless users choose another one. The command creates
	// it. In a namespace of others, such as default, tenants may write ConfigMaps.
	RecordNamespace = "conversion-migrations"
	// holderAnnotation names the process that holds the record, and renewedAnnotation is its last
	// sign of life.
	holderAnnotation  = "conversion-operator.io/migrating"
	renewedAnnotation = "conversion-operator.io/renewed"
	maxName           = 253
)

// ConfigMapName is the name of the ConfigMap with the record of a resource.
func ConfigMapName(resource string) string {
	name := ManagedBy + "-migrate." + resource
	if len(name) <= maxName {
		return name
	}
	return fmt.Sprintf("%s-migrate.%x", ManagedBy, sha256.Sum256([]byte(resource)))
}

// configMap is a record in a ConfigMap. Every write has the resourceVersion of the previous one, so
// that a process that lost the record cannot write it.
type configMap struct {
	core      typedcorev1.CoreV1Interface
	namespace string
	name      string
	// holder identifies this process.
	holder string
	// observation is how long another holder is watched.
	observation time.Duration

	mu sync.Mutex
	// version is the resourceVersion of the last write, and saved the record with it. sent is the record
	// that was sent last: the answer may have been lost.
	version, saved, sent string
}

// restoredError says that the ConfigMap has another record than this process wrote.
type restoredError struct{ record string }

func (r restoredError) Error() string {
	return r.record + " has another record than this process wrote last, as if etcd was restored: run the command again"
}

func (c *configMap) client() typedcorev1.ConfigMapInterface { return c.core.ConfigMaps(c.namespace) }

func (c *configMap) String() string { return "ConfigMap " + c.namespace + "/" + c.name }

func (c *configMap) acquire(ctx context.Context) error {
	var seen *corev1.ConfigMap
	end := time.Now().Add(c.observation)
	for {
		found, err := c.client().Get(ctx, c.name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			err = c.create(ctx)
		case err != nil:
			return fmt.Errorf("cannot read the record, %s: %w", c, err)
		case found.Labels[managedByLabel] != ManagedBy:
			return fmt.Errorf("%s is no record of this command: it has no label %s=%s", c, managedByLabel, ManagedBy)
		case c.free(found, seen, end):
			err = c.write(ctx, found.ResourceVersion, c.claim())
		case seen != nil && found.ResourceVersion != seen.ResourceVersion:
			return heldError{c.String(), found.Annotations[holderAnnotation]}
		default:
			seen = found
			if err := sleep(ctx, c.observation/20); err != nil {
				return err
			}
			continue
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
}

// free reports whether no living process holds the record.
func (c *configMap) free(found, seen *corev1.ConfigMap, end time.Time) bool {
	if found.Annotations[holderAnnotation] == "" {
		return true
	}
	return seen != nil && found.ResourceVersion == seen.ResourceVersion && time.Now().After(end)
}

func (c *configMap) create(ctx context.Context) error {
	options := metav1.CreateOptions{FieldManager: ManagedBy}
	create := func() (*corev1.ConfigMap, error) {
		return c.client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: c.name, Labels: map[string]string{managedByLabel: ManagedBy},
			Annotations: map[string]string{holderAnnotation: c.holder, renewedAnnotation: now()},
		}}, options)
	}
	created, err := create()
	if apierrors.IsNotFound(err) && c.namespace == RecordNamespace {
		_, err = c.core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: RecordNamespace}}, options)
		if err == nil || apierrors.IsAlreadyExists(err) {
			created, err = create()
		}
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot create the record, %s: the namespace %s does not exist: choose another one with --record-namespace", c, c.namespace)
	}
	if err != nil {
		return fmt.Errorf("cannot create the record, %s: %w", c, err)
	}
	c.version = created.ResourceVersion
	return nil
}

func (c *configMap) claim() map[string]any {
	return annotations(c.holder, now())
}

func annotations(holder, renewed any) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{holderAnnotation: holder, renewedAnnotation: renewed}}}
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// write patches the ConfigMap if it has that resourceVersion.
func (c *configMap) write(ctx context.Context, version string, patch map[string]any) error {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = version
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	written, err := c.client().Patch(ctx, c.name, types.MergePatchType, text, metav1.PatchOptions{FieldManager: ManagedBy})
	if err != nil {
		return err
	}
	c.version, c.saved = written.ResourceVersion, written.Data[contract.RecordKey]
	return nil
}

// update writes the record of this process. After a conflict, it finds out who wrote: the answer to
// an own write may have been lost. It overwrites no other record: after etcd was restored from a
// snapshot, objects that were rewritten since are in their old version again.
func (c *configMap) update(ctx context.Context, patch map[string]any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if data, is := patch["data"].(map[string]string); is {
		c.sent = data[contract.RecordKey]
	}
	for {
		err := c.write(ctx, c.version, patch)
		if !apierrors.IsConflict(err) {
			return err
		}
		found, readErr := c.client().Get(ctx, c.name, metav1.GetOptions{})
		if readErr != nil {
			return readErr
		}
		if holder := found.Annotations[holderAnnotation]; holder != c.holder {
			// The engine does not try again after the conflict.
			return fmt.Errorf("%w: %w", takenError{c.String(), holder}, err)
		}
		if is := found.Data[contract.RecordKey]; is != c.saved && is != c.sent {
			return fmt.Errorf("%w: %w", restoredError{c.String()}, err)
		}
		c.version = found.ResourceVersion
	}
}

// Save implements record.
func (c *configMap) Save(ctx context.Context, data map[string]string) error {
	return c.update(ctx, map[string]any{"data": data})
}

func (c *configMap) renew(ctx context.Context) error {
	return c.update(ctx, c.claim())
}

func (c *configMap) reset(ctx context.Context) error {
	return c.update(ctx, map[string]any{"data": nil})
}

func (c *configMap) release(ctx context.Context) error {
	return c.update(ctx, annotations(nil, nil))
}

func sleep(ctx context.Context, duration time.Duration) error {
	if err := (migration.SystemClock{}).Sleep(ctx, duration); err != nil {
		return reasonOf(ctx, err)
	}
	return nil
}
