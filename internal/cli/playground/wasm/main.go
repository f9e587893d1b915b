// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command wasm is the engine of the playground as WebAssembly: it defines the JavaScript function answer, which takes
// the name of a question and its JSON, and returns an object with the JSON of the answer, or with an error.
package main

import (
	"context"
	"syscall/js"

	"github.com/conversion-operator/conversion-operator/internal/cli/playground"
)

func main() {
	js.Global().Set("answer", js.FuncOf(func(_ js.Value, args []js.Value) any {
		text, err := playground.Answer(context.Background(), args[0].String(), []byte(args[1].String()))
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"answer": string(text)}
	}))
	select {}
}
