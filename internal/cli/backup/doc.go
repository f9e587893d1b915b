// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup converts the objects of one kind in a backup of Velero, and copies everything else.
//
// A backup is a compressed archive, in which Velero keeps each object twice:
//
//	resources/crontabs.example.com/namespaces/default/nightly.json
//	resources/crontabs.example.com/v1beta1-preferredversion/namespaces/default/nightly.json
//
// Objects without a namespace are in a folder cluster instead of namespaces. The second file is in a
// folder of the version that the cluster preferred. With Velero's feature EnableAPIGroupVersions,
// there are more folders, one for each other version that was served, and Velero chooses one of them
// that the new cluster serves. Otherwise it creates the first file.
// (github.com/vmware-tanzu/velero v1.18.3, pkg/archive/filesystem.go, pkg/backup/item_backupper.go.)
package backup
