// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incompressible makes text for tests of limits: preserved data is compressed
// where it is long, and most long texts then fit.
package incompressible

import "math/rand/v2"

// Text is as long as it says, in bytes, always the same, and compresses no further
// than to three quarters, which base64 takes back.
func Text(size int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	random, text := rand.New(rand.NewPCG(1, 2)), make([]byte, size)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}
