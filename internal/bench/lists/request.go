// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// lister sends requests to an API server, and reads plain text: compressing it is not part of a
// conversion.
type lister struct {
	client *http.Client
	host   string
}

func newLister(config *rest.Config) (*lister, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	client, err := rest.HTTPClientFor(config)
	return &lister{client, strings.TrimSuffix(config.Host, "/")}, err
}

// list reads the first objects of a resource, and returns the time for it.
func (l *lister) list(ctx context.Context, resource schema.GroupVersionResource, count int, to io.Writer) (time.Duration, error) {
	began := time.Now()
	err := l.get(ctx, fmt.Sprintf("%s?limit=%d", path(resource), count), "application/json", to)
	return time.Since(began), err
}

func path(resource schema.GroupVersionResource) string {
	return fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", resource.Group, resource.Version, scenarios.Namespace, resource.Resource)
}

func (l *lister) get(ctx context.Context, path, accept string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.host+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	answer, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("GET %s: %s: %.500s", path, answer.Status, text)
	}
	_, err = io.Copy(to, answer.Body)
	return err
}

// check returns an error unless a list has some objects, all of them converted if they should be.
func check(text []byte, count int, converted bool) error {
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list.Items) != count {
		return fmt.Errorf("the list has %d objects, not %d", len(list.Items), count)
	}
	for _, item := range list.Items {
		if _, found, err := unstructured.NestedString(item, "spec", "runtime", "image"); err != nil || found != converted {
			return errors.Join(fmt.Errorf("spec.runtime.image is in an object: %t, want %t", found, converted), err)
		}
	}
	return nil
}
