// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package converters

import (
	"encoding/json"
	"fmt"
	"net"
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
		convert := toSpoke
		if request.DesiredAPIVersion == group+"/v2" {
			convert = toHub
		}
		convert(object.Object)
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
	rename(spec["ports"], "number", "containerPort")
	if owner := take(spec, "owner"); owner != nil {
		// What was decoded from JSON can be encoded.
		kept, _ := keep(owner)
		within(object, "metadata", "annotations")[keptAnnotation] = kept
	}
}

// toSpoke converts a Task from v2 to v1 in place.
func toSpoke(object map[string]any) {
	object["apiVersion"] = group + "/v1"
	spec, _ := object["spec"].(map[string]any)
	if schedule, ok := take(spec, "schedule").(map[string]any); ok {
		fields := make([]string, len(cronFields))
		for i, name := range cronFields {
			fields[i], _ = schedule[name].(string)
		}
		spec["cron"] = strings.Join(fields, " ")
	}
	if host, ok := take(spec, "host").(string); ok {
		spec["endpoint"] = net.JoinHostPort(host, fmt.Sprint(take(spec, "port")))
	}
	if program, ok := take(spec, "runtime").(map[string]any); ok {
		spec["image"] = program["image"]
	}
	if policy, ok := take(spec, "concurrency").(string); ok {
		spec["concurrencyPolicy"] = concurrencies[policy]
	}
	if nodes, ok := take(spec, "nodes").([]any); ok && len(nodes) > 0 {
		spec["nodeName"] = nodes[0]
	}
	rename(spec["ports"], "containerPort", "number")
	var kept kept
	if text, ok := take(within(object, "metadata", "annotations"), keptAnnotation).(string); ok && json.Unmarshal([]byte(text), &kept) == nil {
		spec["owner"] = kept.Fields[keptOwner]
	}
}

// take removes a member and returns it, or nil.
func take(object map[string]any, name string) any {
	value := object[name]
	delete(object, name)
	return value
}

// rename renames a member in every element of a list.
func rename(list any, from, to string) {
	elements, _ := list.([]any)
	for i := range elements {
		if element, ok := elements[i].(map[string]any); ok {
			element[to] = take(element, from)
		}
	}
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
