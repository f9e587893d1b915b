// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// unstructuredHandler converts like the example of the Kubernetes documentation: decode the review,
// edit maps, encode the review. It is a little faster, as it does not copy every object or choose a
// serializer.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#write-a-conversion-webhook-server
func unstructuredHandler(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "the body is no ConversionReview", http.StatusBadRequest)
		return
	}
	review.Response = convertObjects(review.Request)
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(&review)
}

func convertObjects(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID}
	for _, raw := range request.Objects {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		toHub(object.Object)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: &object})
	}
	response.Result = metav1.Status{Status: metav1.StatusSuccess}
	return response
}

// toHub converts a Task from v1 to v2 in place.
func toHub(object map[string]any) {
	object["apiVersion"] = group + "/v2"
	spec, _ := object["spec"].(map[string]any)
	if cron, ok := take(spec, "cron").(string); ok {
		schedule := map[string]any{}
		for i, field := range strings.SplitN(cron, " ", len(cronFields)) {
			schedule[cronFields[i]] = field
		}
		spec["schedule"] = schedule
	}
	if endpoint, ok := take(spec, "endpoint").(string); ok {
		host, port, _ := strings.Cut(endpoint, ":")
		spec["host"] = host
		spec["port"], _ = strconv.ParseInt(port, 10, 32)
	}
	if image := take(spec, "image"); image != nil {
		spec["runtime"] = map[string]any{"image": image}
	}
	if policy, ok := take(spec, "concurrencyPolicy").(string); ok {
		spec["concurrency"] = policies[policy]
	}
	if node := take(spec, "nodeName"); node != nil {
		spec["nodes"] = []any{node}
	}
	ports, _ := spec["ports"].([]any)
	for i := range ports {
		if port, ok := ports[i].(map[string]any); ok {
			port["containerPort"] = take(port, "number")
		}
	}
	if owner := take(spec, "owner"); owner != nil {
		// What was decoded from JSON can be encoded.
		kept, _ := keep(owner)
		within(object, "metadata", "annotations")[keptAnnotation] = kept
	}
}

// take removes a member and returns it, or nil.
func take(object map[string]any, name string) any {
	value := object[name]
	delete(object, name)
	return value
}

// within returns the object at a path, and creates it if missing.
func within(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		object = next
	}
	return object
}
