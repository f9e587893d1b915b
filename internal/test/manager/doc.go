// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager tests the manager with a real API server, whose nodes run converter and migration
// pods as processes.
//
// The manager runs in the test process, so that a test can intercept its requests, read its logs and set its
// clock (suite_test.go). It has exactly the rights of the installation, and the admission policies that confine
// it are there. The image of pods is the test's own program (program_test.go): the operator's commands,
// where serve stands behind a server that misbehaves as a test says, to the manager or to API servers.
//
// There are tests of activations, drift, certificates, migrations, the removal of versions and the
// deletion of policies; of admission and of rights; and of what happens to preserved data
// (preserved_test.go): they compare the bytes in etcd. Decisions themselves are tested in
// internal/operator/plan, and what needs no API server in controllers.
package manager
