// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit looks for what endangers the objects of CustomResourceDefinitions,
// whoever converts them. It is pure: what was observed of one definition goes in
// (observed.go), findings come out (finding.go). No operator is needed.
//
// Each check has a file of its own:
//
//	stored.go      versions in which objects may still be stored
//	none.go        strategy None between versions that differ
//	cabundle.go    what API servers trust of a conversion webhook
//	webhook.go     where its calls go, and whether they arrive
//	reads.go       objects that were read at each served version
//	pruned.go      status.storedVersions that may not be true
//	deprecated.go  deprecated versions that are served
//	conditions.go  what the API server itself complains of
//	policies.go    ConversionPolicies that are not ready
//
// The Report (report.go) holds the findings of all definitions, the worst first.
// Package live observes a cluster.
package audit
