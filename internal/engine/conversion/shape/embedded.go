// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"context" //nolint:depguard // the validation of ObjectMeta wants one, and waits for nothing
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/shape/internal/form"
)

// declareObjectFields declares the fields that every Kubernetes object has. The schema may
// restrict them further, but not prune them.
func declareObjectFields(node *form.Node) *form.Node {
	with, limits := *node, form.Limits{}
	if node.Limits != nil {
		limits = *node.Limits
	}
	limits.Required = slices.Concat(limits.Required, []string{"apiVersion", "kind"})
	with.Limits, with.Properties = &limits, map[string]*form.Node{}
	maps.Copy(with.Properties, node.Properties)
	for name, own := range map[string]*form.Node{"apiVersion": {Type: "s"}, "kind": {Type: "s"}, "metadata": {Type: "o", Preserve: true}} {
		if declared := node.Properties[name]; declared != nil {
			own.Limits = &form.Limits{AllOf: []*form.Node{declared}}
			if declared.Limits != nil {
				own.Default = declared.Default
			}
		}
		with.Properties[name] = own
	}
	return &with
}

// checkEmbedded adds the API server's checks of these fields.
func (s *Schema) checkEmbedded() {
	for name, check := range map[string]func(any) string{"apiVersion": apiVersion, "kind": kindName, "metadata": objectMeta} {
		declared := s.properties[name]
		checked := declared.withLimits(&limits{
			Limits: declared.limits.Limits, allOf: declared.limits.allOf, extraCheck: check,
		})
		checked.limited, s.properties[name] = true, checked
	}
}

func apiVersion(value any) string {
	text, _ := value.(string)
	if _, err := schema.ParseGroupVersion(text); err != nil || text == "" {
		return "is not an API version"
	}
	return ""
}

func kindName(value any) string {
	text, _ := value.(string)
	if len(validation.IsDNS1035Label(strings.ToLower(text))) > 0 {
		return "is not a kind"
	}
	return ""
}

func objectMeta(value any) string {
	text, err := utiljson.Marshal(value)
	if err != nil {
		return "is not the metadata of an object"
	}
	meta := &metav1.ObjectMeta{}
	strict, err := kjson.UnmarshalStrict(text, meta)
	if err != nil || len(strict) > 0 {
		return "is not the metadata of an object"
	}
	if meta.Name == "" {
		meta.Name = "any" // embedded objects may have no name
	}
	problems := metavalidation.ValidateObjectMetaDeclaratively(context.Background(), operation.Create, meta, nil, meta.Namespace != "", pathSegment, field.NewPath("metadata"), true)
	if len(problems) > 0 {
		return "does not validate as metadata: " + truncated(problems[0].Field)
	}
	return ""
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
