// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs reads the pages of the documentation, and runs their commands, with the pre-commit hook
// and the GitHub action that they describe.
//
// A page is Markdown. The info string of a code block, which readers do not see, says how to use
// the block:
//
//	```yaml file=policy.yaml     is saved under that name
//	```console play              is run, and prints what is shown
//	```sh play                   is run, and succeeds
//	```sh play=NAME              is run with the other blocks of that name
//	```console symptom=NAME      prints what is shown in the trouble of this name
//	```sh untyped=REASON         is run by no test, for a reason in typed_test.go
//
// In a console block, lines that begin with "$ " are commands, followed by their output. In a block
// of sh, all lines are commands. A backslash at the end of a line, or a here-document, continues a
// command. A line "..." in the output matches any lines, and "…" a part of a line. Ages, times,
// hashes, names of pods, addresses and the width of columns may differ.
//
// A scene is the sequence of blocks that one test runs, from one or more pages; scenes.go lists
// them. Each block with commands is in a scene, belongs to a symptom, or has a reason. Scenes that
// need pods are run by the end-to-end tests, that of an installation by the tests in
// internal/test/install, and those that need only an API server by the tests of this package.
package docs
