// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package export writes a converter that another project ships, for clusters without the operator: the same pods,
// from the rendering of package workload, with a compiled ruleset and without any right to the API.
//
//	export.go       what is shipped, and its files in each format
//	converter.go    the converter: pods, Service, ruleset, certificates
//	jobs.go         the Job that checks the pods before the CustomResourceDefinition names a ruleset, and the one that migrates
//	helm.go         the same objects as one template of a chart; template.yaml has what only a template decides
//	check.go        what the first Job does
//
// The order of a change is that of the operator: the pods load the new ruleset beside the one in use; the Job checks
// each of them; only then the CustomResourceDefinition names it.
package export
