// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// returnedMetadata are the members of metadata that an API server takes from a response, or
// compares with the request. It restores all others from the object that it sent, so a converter
// may omit them: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go,
// validateConvertedObject and restoreObjectMeta.
var returnedMetadata = map[string]bool{"name": true, "namespace": true, "uid": true, "labels": true, "annotations": true}

// agree returns the first difference between the responses of the subjects to a body. Converters
// must return the same objects, and the other subjects the body itself.
func agree(b body, all []subject) error {
	var want []any
	var first string
	for _, s := range all {
		c := newClient(s.handler, b.text)
		c.call()
		if !s.converts {
			if c.answer.code != http.StatusOK || !bytes.Equal(c.answer.text, b.text) {
				return fmt.Errorf("%s: %s does not send the body back: %d %.200s", b.name, s.name, c.answer.code, c.answer.text)
			}
			continue
		}
		objects, err := b.objectsOf(&c.answer)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", b.name, s.name, err)
		}
		if want == nil {
			want, first = objects, s.name
		}
		if !reflect.DeepEqual(want, objects) {
			return fmt.Errorf("%s: what %s (-) and %s (+) make of it differs:\n%s", b.name, first, s.name, cmp.Diff(want, objects))
		}
	}
	return nil
}

// objectsOf returns the objects of a response as an API server reads them.
func (b body) objectsOf(a *answer) ([]any, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(a.text, &review); err != nil || a.code != http.StatusOK || review.Response == nil {
		return nil, fmt.Errorf("the answer is no ConversionReview: %d %.200s", a.code, a.text)
	}
	response := review.Response
	switch {
	case review.Kind != "ConversionReview" || review.APIVersion != apiextensionsv1.SchemeGroupVersion.String():
		return nil, fmt.Errorf("the answer is a %s of %s", review.Kind, review.APIVersion)
	case response.UID != b.uid:
		return nil, fmt.Errorf("the answer is for uid %q, not %q", response.UID, b.uid)
	case response.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("the conversion failed: %s", response.Result.Message)
	case len(response.ConvertedObjects) != b.objects:
		return nil, fmt.Errorf("the answer has %d objects, not %d", len(response.ConvertedObjects), b.objects)
	}
	objects := make([]any, 0, b.objects)
	for _, raw := range response.ConvertedObjects {
		object, err := b.objectOf(raw.Raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// objectOf returns what an API server takes of a converted object.
func (b body) objectOf(text []byte) (map[string]any, error) {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("an object of the answer is not readable: %w", err)
	}
	if object.GetAPIVersion() != b.desired {
		return nil, fmt.Errorf("an object of the answer is in %v, not in %s", object.GetAPIVersion(), b.desired)
	}
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("an object of the answer has no metadata: %.200s", text)
	}
	maps.DeleteFunc(metadata, func(name string, _ any) bool { return !returnedMetadata[name] })
	return object.Object, nil
}
