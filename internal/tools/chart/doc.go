// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart writes the generated files of config/chart, from which Helm installs the operator.
// `make chart` runs it.
//
// Each template is made from the file of config/ at the same path: templates/rbac/role.yaml from
// config/rbac/role.yaml. kustomize renders config/default with and without each component of
// config/components (variants.go). A field that a component changes becomes a condition on the value
// of that component (merge.go). The table in fields.go lists the fields that have values of their
// own, such as resources. Chart.yaml is made from the ClusterServiceVersion in config/manifests/bases.
//
// A new component has a value with its name in camel case: config/components/network-policies is
// installed if networkPolicies.enabled is true. A new kind, object or field needs no change here.
//
// The other files of config/chart are written by hand: values.yaml, values.schema.json, the helpers,
// the hooks and the notes. internal/test/chart compares what Helm and kustomize render.
package main
