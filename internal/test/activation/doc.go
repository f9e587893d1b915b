// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package activation tests the manager with a real API server, whose nodes run converter and migration
// pods as processes, while pods misbehave.
//
// The manager runs in the test process, so that a test can intercept its requests (suite_test.go). The
// image of pods is the test's own program (program_test.go): the operator's commands, where serve stands
// behind a server that misbehaves as a test says, to the manager or to API servers.
//
// The package also tests what happens to preserved data (preserved_test.go): migrations, and the
// removal of accepted losses. It compares the bytes in etcd.
package activation
