// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pages reads the pages of the documentation, and does what they tell
// their readers to do.
//
// A page is Markdown. What its code blocks are for is written behind their
// language:
//
//	```yaml file=policy.yaml     is to be saved under that name
//	```console play              is to be typed, and answers what is shown
//	```console symptom=NAME      answers that in the trouble of this name
//
// In a console block, lines that begin with "$ " are commands; one that ends
// with a backslash, or has a here-document, goes on in the next line. What
// follows a command is its answer. A line "..." there stands for any lines,
// and "…" for a part of a line.
// Ages, times, hashes, names of pods, addresses and the width of columns may differ.
//
// What stands under a heading can be played alone, so that one scene can be that of
// several pages. Pages that need converter pods are played by the end-to-end tests, and those
// that need an API server alone by the tests of this package.
package pages
