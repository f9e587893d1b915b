// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package incompressible makes text for tests of size limits: long preserved data is compressed,
// and ordinary long text then fits.
package incompressible

import "math/rand/v2"

// Text returns size bytes, the same in every call. They compress to three quarters at best, which
// base64 undoes.
func Text(size int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	random, text := rand.New(rand.NewPCG(1, 2)), make([]byte, size)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}
