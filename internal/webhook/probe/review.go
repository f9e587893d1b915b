// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/conversion-operator/conversion-operator/internal/engine/preserved"
	"github.com/conversion-operator/conversion-operator/internal/operator/terminal"
)

const (
	reviewGroup = apiextensionsv1.GroupName
	reviewKind  = "ConversionReview"
)

// review sends objects, and returns the converted ones. The checks are those of
// k8s.io/apiextensions-apiserver/pkg/apiserver/conversion, in the same order.
func (c *connection) review(ctx context.Context, desired string, objects [][]byte) ([][]byte, error) {
	uid := uuid.NewUUID()
	body, err := c.call(ctx, http.MethodPost, c.path, encodeReview(uid, c.version, desired, objects))
	if err != nil {
		return nil, err
	}
	response, err := checkReview(uid, c.version, body)
	if err != nil {
		return nil, err
	}
	if response.Result.Status != metav1.StatusSuccess {
		return nil, &refusal{failf(ReasonCanaryFailed, "converting to %s: %s", desired, bounded(resultMessage(&response.Result)))}
	}
	if len(response.ConvertedObjects) != len(objects) {
		return nil, failf(ReasonCanaryFailed, "converting to %s: the pod returned %d objects, expected %d", desired, len(response.ConvertedObjects), len(objects))
	}
	converted := make([][]byte, 0, len(objects))
	for _, object := range response.ConvertedObjects {
		converted = append(converted, object.Raw)
	}
	return converted, nil
}

func encodeReview(uid types.UID, version, desired string, objects [][]byte) []byte {
	request := &apiextensionsv1.ConversionRequest{UID: uid, DesiredAPIVersion: desired, Objects: []runtime.RawExtension{}}
	for _, object := range objects {
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: object})
	}
	body, err := json.Marshal(&apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: reviewGroup + "/" + version, Kind: reviewKind},
		Request:  request,
	})
	if err != nil {
		panic(err) // the objects are valid JSON
	}
	return body
}

// checkReview returns the response in body if it answers the review uid.
func checkReview(uid types.UID, version string, body []byte) (*apiextensionsv1.ConversionResponse, error) {
	var review apiextensionsv1.ConversionReview
	if err := utiljson.Unmarshal(body, &review); err != nil {
		return nil, failf(ReasonUnexpectedAnswer, "the answer to a ConversionReview is not JSON of that kind: %s", quote(string(body)))
	}
	checked := version != "v1beta1" // API servers do not check these two of that version
	want := schema.GroupVersionKind{Group: reviewGroup, Version: version, Kind: reviewKind}
	if got := review.GroupVersionKind(); got != want && checked {
		return nil, failf(ReasonUnexpectedAnswer, "the answer to a ConversionReview is of kind %q, expected %q", got, want)
	}
	if review.Response == nil {
		return nil, failf(ReasonUnexpectedAnswer, "the answer to a ConversionReview has no response")
	}
	if review.Response.UID != uid && checked {
		return nil, failf(ReasonUnexpectedAnswer, "the answer to a ConversionReview does not carry its request.uid in response.uid")
	}
	return review.Response, nil
}

func resultMessage(result *metav1.Status) string {
	if message := terminal.OneLine(result.Message); message != "" {
		return message
	}
	return fmt.Sprintf("response.result.status is %q, not %q", result.Status, metav1.StatusSuccess)
}

// checkObject checks raw, the result for original, and returns it with exact numbers.
func checkObject(original *unstructured.Unstructured, raw []byte, desired string) (any, error) {
	converted, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	for _, identity := range []struct{ field, got, want string }{
		{"apiVersion", converted.GetAPIVersion(), desired},
		{"kind", converted.GetKind(), original.GetKind()},
		{"metadata.name", converted.GetName(), original.GetName()},
		{"metadata.namespace", converted.GetNamespace(), original.GetNamespace()},
		{"metadata.uid", string(converted.GetUID()), string(original.GetUID())},
	} {
		if identity.got != identity.want {
			return nil, fmt.Errorf("%s is %q, expected %q", identity.field, identity.got, identity.want)
		}
	}
	if err := checkMetadata(converted.Object); err != nil {
		return nil, err
	}
	return preserved.Decode(raw)
}

// checkMetadata checks labels and annotations, which API servers copy from the answer.
func checkMetadata(object map[string]any) error {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("metadata is missing or not an object")
	}
	labels, err := stringMap(metadata, "labels")
	if err != nil {
		return err
	}
	annotations, err := stringMap(metadata, "annotations")
	if err != nil {
		return err
	}
	path := field.NewPath("metadata")
	return append(metav1validation.ValidateLabels(labels, path.Child("labels")),
		apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...).ToAggregate()
}

func stringMap(metadata map[string]any, name string) (map[string]string, error) {
	if metadata[name] == nil {
		return nil, nil
	}
	values, _, err := unstructured.NestedStringMap(metadata, name)
	if err != nil {
		return nil, fmt.Errorf("metadata.%s is not a map of strings", name)
	}
	return values, nil
}

func parseObject(raw []byte) (*unstructured.Unstructured, error) {
	var values map[string]any
	if err := utiljson.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	object := &unstructured.Unstructured{Object: values}
	if object.GetKind() == "" {
		return nil, fmt.Errorf("kind is missing")
	}
	return object, nil
}
