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
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/conversion-operator/conversion-operator/internal/engine/tree"
)

// declareObjectFields declares the fields that every Kubernetes object has. The schema may
// restrict them further, but not prune them.
func (s *Schema) declareObjectFields() {
	limits := Limits{}
	if s.Limits != nil {
		limits = *s.Limits
	}
	limits.Required = slices.Concat(limits.Required, []string{"apiVersion", "kind"})
	members := map[string]*Schema{}
	maps.Copy(members, s.Properties)
	for name, node := range map[string]Node{"apiVersion": {Kind: StringKind}, "kind": {Kind: StringKind}, "metadata": {Kind: ObjectKind, Preserve: true}} {
		node.Limits = &Limits{envelope: name}
		if declared := s.Properties[name]; declared != nil {
			node.AllOf = []*Schema{declared}
			if declared.Limits != nil {
				node.Fallback = declared.Fallback
			}
		}
		members[name] = &Schema{Node: node}
	}
	s.Limits, s.Properties = &limits, members
}

// checkEnvelope does the API server's checks of these fields.
func (s *Schema) checkEnvelope(n *tree.Node, of extent) *MisfitError {
	if of == part {
		return nil
	}
	switch s.envelope {
	case "apiVersion":
		if _, err := schema.ParseGroupVersion(n.Text()); err != nil || n.Text() == "" {
			return misfit("is not an API version")
		}
	case "kind":
		if len(validation.IsDNS1035Label(strings.ToLower(n.Text()))) > 0 {
			return misfit("is not a kind")
		}
	case "metadata":
		return checkMetadata(n)
	}
	return nil
}

func checkMetadata(n *tree.Node) *MisfitError {
	meta := &metav1.ObjectMeta{}
	strict, err := kjson.UnmarshalStrict(n.JSON(), meta)
	if err != nil || len(strict) > 0 {
		return misfit("is not the metadata of an object")
	}
	if meta.Name == "" {
		meta.Name = "any" // embedded objects may have no name
	}
	problems := metavalidation.ValidateObjectMetaDeclaratively(context.Background(), operation.Create, meta, nil, meta.Namespace != "", pathSegment, field.NewPath("metadata"), true)
	if len(problems) > 0 {
		return misfit("does not validate as metadata: " + truncated(problems[0].Field))
	}
	return nil
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
