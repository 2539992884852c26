output "function" {
  description = "Invoke this with observations."
  value       = aws_lambda_function.law.function_name
}

output "table" {
  description = "Read the levels here; an item whose expire_at has passed is none."
  value       = aws_dynamodb_table.signals.name
}
