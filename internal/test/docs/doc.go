// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs reads the pages of the documentation, and does what they tell
// their readers to do.
//
// A page is Markdown. What its code blocks are for is written behind their
// language, where readers do not see it:
//
//	```yaml file=policy.yaml     is to be saved under that name
//	```console play              is to be typed, and answers what is shown
//	```sh play                   is to be typed, and ends well
//	```sh play=NAME              is typed with others of that name
//	```console symptom=NAME      answers that in the trouble of this name
//	```sh untyped=REASON         is typed by no test, for a reason in typed_test.go
//
// In a console block, lines that begin with "$ " are commands, and what follows one is
// its answer; in a block of sh all lines are commands. One that ends with a backslash,
// or has a here-document, goes on in the next line. A line "..." in an answer stands for
// any lines, and "…" for a part of a line. Ages, times, hashes, names of pods, addresses
// and the width of columns may differ.
//
// A scene is what one test types, of one page or of several: scenes.go has all of them.
// Each block with commands is in a scene, belongs to a symptom, or has a reason. Scenes
// that need pods are played by the end-to-end tests, that of an installation by the
// tests in internal/test/install, and those that need an API server alone by the tests of
// this package.
package docs
