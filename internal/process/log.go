// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// LogOptions are flags of all programs and commands.
type LogOptions struct {
	level  string
	format string
}

// AddFlags adds --log-level and --log-format.
func (o *LogOptions) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.level, "log-level", "info", "minimum severity to log: debug, info or error")
	flags.StringVar(&o.format, "log-format", "json", "log format: json or text")
}

// NewLogger returns a logger for the options.
func (o *LogOptions) NewLogger(to io.Writer) (logr.Logger, error) {
	levels := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "error": zapcore.ErrorLevel}
	level, ok := levels[o.level]
	if !ok {
		return logr.Discard(), fmt.Errorf("--log-level must be debug, info or error, is %q", o.level)
	}
	formats := map[string]zap.Opts{"json": zap.JSONEncoder(readableTime), "text": zap.ConsoleEncoder(readableTime)}
	format, ok := formats[o.format]
	if !ok {
		return logr.Discard(), fmt.Errorf("--log-format must be json or text, is %q", o.format)
	}
	// The position of a log call does not help with an error from another place.
	// Panics have their stack as a value.
	return zap.New(zap.WriteTo(to), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel), format), nil
}

func readableTime(config *zapcore.EncoderConfig) {
	config.EncodeTime = zapcore.RFC3339TimeEncoder
}
