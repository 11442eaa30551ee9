package quotafile

import (
	"maps"

	"github.com/numaproj-contrib/numathrottle/internal/config"
	"github.com/numaproj-contrib/numathrottle/pkg/limit"
)

// Schema returns the JSON schema of quotas in a file: as a mapping, or as its text. Validate has the bounds that it repeats, and finds
// contradictions.
func Schema() config.Schema {
	whole := func(most int) config.Schema {
		return config.Schema{"anyOf": []any{config.Schema{"type": "integer", "minimum": 0, "maximum": most}, text("^[0-9]{1,10}$")}}
	}
	yesOrNo := config.Schema{"enum": []any{true, false, "true", "false"}}
	budget := mapping(config.Schema{
		"amount": config.Schema{"anyOf": []any{
			config.Schema{"type": "number", "minimum": 1, "maximum": limit.MaxAmount}, text(`^[1-9][0-9]{0,18}(\.[0-9]{1,18})?([eE]\+?[0-9]{1,2})?$`),
		}},
		"per": words(limit.Hour, limit.Day, limit.Month), "zone": text("."), "then": words(limit.Refuse, limit.Fallback, limit.Lower),
	})
	terms := config.Schema{
		"reserved": whole(limit.MaxTokens), "burst": whole(limit.MaxTokens), "weight": whole(limit.MaxWeight),
		"total": config.Schema{"anyOf": []any{config.Schema{"const": "none"}, whole(limit.MaxTokens)}},
		"per":   config.DurationForm(limit.MinPer, limit.MaxPer), "hard": yesOrNo, "shadow": yesOrNo,
		"class":   words(limit.Interactive, limit.Batch),
		"budgets": config.Schema{"type": []any{"array", "null"}, "maxItems": mostBudgets, "items": budget},
	}
	pattern := maps.Clone(terms)
	pattern["tag"] = config.Schema{"type": []any{"string", "number", "boolean"}, "minLength": 1}
	quotas := mapping(config.Schema{
		"tags":  config.Schema{"type": []any{"object", "null"}, "additionalProperties": mapping(terms)},
		"match": config.Schema{"type": []any{"array", "null"}, "maxItems": limit.MaxPatterns, "items": mapping(pattern)},
		"other": mapping(terms),
	})
	quotas["type"] = "object" // nothing at all is empty
	return config.Schema{"anyOf": []any{quotas, text("[:{]")}}
}

func mapping(properties config.Schema) config.Schema {
	return config.Schema{"type": []any{"object", "null"}, "additionalProperties": false, "properties": properties}
}

func text(pattern string) config.Schema { return config.Schema{"type": "string", "pattern": pattern} }

func words[T ~string](all ...T) config.Schema { return config.Schema{"enum": all} }
