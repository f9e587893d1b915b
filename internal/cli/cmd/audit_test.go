// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

// lossy is a definition that loses a field, and has a deprecated version.
const lossy = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object, properties: {note: {type: string}}}}}
`
