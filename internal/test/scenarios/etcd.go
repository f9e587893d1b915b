// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/conversion-operator/conversion-operator/internal/dev/localcluster"
	"github.com/conversion-operator/conversion-operator/internal/test/etcd"
)

// EndpointVariable names the environment variable with the address of etcd. Only the project's own
// cluster sets it; on other clusters, stored bytes are not shown.
const EndpointVariable = localcluster.EtcdVariable

// Stored is the content of etcd for one resource.
type Stored struct {
	// Versions counts objects by the apiVersion in their bytes.
	Versions map[string]int
	// Bytes are the objects' bytes by namespace/name.
	Bytes map[string]string
}

// ReadStored reads the stored bytes of all objects of a resource. It returns nil without etcd.
func ReadStored(ctx context.Context, group, resource string) (*Stored, error) {
	endpoint := os.Getenv(EndpointVariable)
	if endpoint == "" {
		return nil, nil //nolint:nilnil // no etcd to read is an answer
	}
	prefix := "/registry/" + group + "/" + resource + "/"
	entries, _, err := etcd.Client(endpoint).List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("read etcd: %w", err)
	}
	stored := &Stored{Versions: map[string]int{}, Bytes: map[string]string{}}
	for _, entry := range entries {
		object := struct{ APIVersion string }{}
		if err := json.Unmarshal(entry.Value, &object); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Key, err)
		}
		stored.Versions[object.APIVersion]++
		stored.Bytes[strings.TrimPrefix(string(entry.Key), prefix)] = string(entry.Value)
	}
	return stored, nil
}

// String returns the number of objects by version: "1003 objects at example.com/v1".
func (s *Stored) String() string {
	var counts []string
	for _, version := range slices.Sorted(maps.Keys(s.Versions)) {
		counts = append(counts, fmt.Sprintf("%d objects at %s", s.Versions[version], version))
	}
	return strings.Join(counts, ", ")
}

// Only reports whether all objects are stored at one version.
func (s *Stored) Only(apiVersion string) bool {
	return len(s.Versions) == 1 && s.Versions[apiVersion] > 0
}

// withoutManagedFields shortens an object's bytes for readers.
func withoutManagedFields(text string) string {
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return text
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, noise := range []string{"managedFields", "uid", "creationTimestamp", "generation"} {
			delete(metadata, noise)
		}
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	short, err := json.Marshal(object)
	if err != nil {
		return text
	}
	return string(short)
}
